"""`make quick` runs the tests of what was changed."""

from __future__ import annotations

from changed import ROOT, mirrored


def test_a_file_s_own_tests_else_those_of_its_wing_else_of_its_room() -> None:
    assert mirrored(["src/taciturn/privacy/accounting/renyi.py"]) == ["tests/privacy/accounting/test_renyi.py"]
    some = mirrored(["src/taciturn/privacy/accounting/mixture_coins.py"])
    assert some == ["tests/privacy/accounting/test_user_entity.py"], "the tests that import it"
    assert mirrored(["src/taciturn/privacy/accounting/new.py"]) == ["tests/privacy/accounting"]
    assert mirrored(["src/taciturn/recipes/crt/figure6.py"]) == ["tests/recipes"]


def test_each_test_runs_once_and_what_is_gone_is_left_out() -> None:
    files = ["src/taciturn/privacy/accounting/new.py", "tests/privacy/accounting/test_renyi.py", "tests/test_gone.py"]
    assert mirrored(files) == ["tests/privacy/accounting"]
    assert mirrored(["tests/test_changed.py", "LICENSE"]) == ["tests/test_changed.py"]


def test_every_room_has_tests() -> None:
    rooms = [each.name for each in (ROOT / "src" / "taciturn").iterdir() if (each / "__init__.py").exists()]
    assert all(mirrored([f"src/taciturn/{room}/new.py"]) for room in rooms)
