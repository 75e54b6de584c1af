PY ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test quick explore lint clean

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PY) -m venv $(VENV)
	$(BIN)/pip install -q --upgrade pip
	$(BIN)/pip install -q -c constraints.txt -e '.[dev]'
	touch $@

demo: $(VENV)/.installed  ## the whole story on a simulated corpus
	$(BIN)/taciturn demo -o demo/

lint: $(VENV)/.installed
	$(BIN)/ruff check --no-cache .  # where an import belongs depends on other files, which its cache does not see
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: lint  ## lint, types, import layers, every test
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal -rs src/taciturn tests  # a worker a core; what is near stays together

quick: $(VENV)/.installed  ## the tests of what was changed
	tests="$$($(BIN)/python tests/changed.py)"; test -n "$$tests" || { echo "nothing that has tests was changed"; exit 0; }; \
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 $$tests

explore: lint  ## property tests with examples they have not seen
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --hypothesis-profile explore -m hypothesis tests

clean:
	rm -rf $(VENV) demo build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
