"""The wheel and the sdist: small, whole, one version, typed for whoever uses the package."""

from __future__ import annotations

import email
import os
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import taciturn
from taciturn.cli.main import COMMANDS

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
MOST = 1_500_000
BUILD = "import sys, hatchling.build as b; b.build_wheel(sys.argv[1]); b.build_sdist(sys.argv[1])"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel and the sdist."""
    pytest.importorskip("hatchling", reason="the build backend is not installed: pip install hatchling")
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-c", BUILD, str(folder)], cwd=ROOT, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> zipfile.ZipFile:
    return zipfile.ZipFile(next(built.glob("*.whl")))


def test_the_wheel_is_small_and_has_every_file_of_the_package(built: Path, wheel: zipfile.ZipFile) -> None:
    assert next(built.glob("*.whl")).stat().st_size < MOST
    ours = {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src/taciturn").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and not path.name.endswith((".pyc", ".partial"))
    }
    names = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert names == ours
    assert names >= {"taciturn/py.typed", "taciturn/reporting/template.html", "taciturn/project/references.bib"}


def test_the_metadata_say_what_the_project_says(wheel: zipfile.ZipFile) -> None:
    info = next(name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    said = email.message_from_string(wheel.read(info).decode())
    assert said["Version"] == taciturn.__version__
    assert set(said.get_all("Provides-Extra") or ()) == set(PROJECT["optional-dependencies"])
    entry = wheel.read(info.replace("METADATA", "entry_points.txt")).decode()
    assert "taciturn = taciturn.cli.main:main" in entry


def test_the_version_stands_in_one_place() -> None:
    """Where pyproject.toml does not take it from the package, it must at least be the same."""
    assert PROJECT.get("version", taciturn.__version__) == taciturn.__version__


def test_the_sdist_can_be_built_and_tested_from(built: Path) -> None:
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert names >= {"pyproject.toml", "README.md", "LICENSE", "src/taciturn/__init__.py", "tests/test_packaging.py"}
    assert not [
        name for name in names if name.startswith(("demo/", "shared/", ".venv/")) or name.endswith(".safetensors")
    ]


def test_the_unpacked_wheel_runs(wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    wheel.extractall(tmp_path)
    code = (
        "import sys, taciturn; from taciturn.cli.main import run\n"
        f"assert taciturn.__file__.startswith({str(tmp_path)!r})\n"
        "assert run(['--help']) == 0 and run(['--version']) == 0 and run(['cite']) == 0\n"
        "heavy = {'torch', 'pyarrow', 'transformers'} & sys.modules.keys()\n"
        "assert not heavy, heavy"
    )
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert taciturn.__version__ in done.stdout
    assert all(name in done.stdout for name in COMMANDS)


DOWNSTREAM = """
from pathlib import Path
from typing import assert_type

import taciturn as tt
from taciturn.api import Planned, Report, TrainedRun
from taciturn.auditing.finding import Finding
from taciturn.privacy.certificates.certificate import Certificate
from taciturn.screening.policies.base import Policy
from taciturn.screening.corpus.screened import ScreenedCorpus
from taciturn.text.document import Document
from taciturn.text.readers import Corpus


def story(folder: Path) -> list[str]:
    corpus = assert_type(tt.read("mail/*.jsonl", text="body", user="sender"), Corpus)
    policy = assert_type(tt.policy("ssn", "email"), Policy)
    screened = assert_type(tt.screen(corpus, policy, tt.policy("conservative"), out=folder), ScreenedCorpus)
    assert_type(tt.load_screened(folder), ScreenedCorpus)
    plan = assert_type(tt.plan("crt", screened, model="gpt2", epsilon=3, delta=8e-5), Planned)
    run = assert_type(tt.train(plan, out=folder / "run"), TrainedRun)
    certificate = assert_type(run.certify(), Certificate)
    assert_type(tt.audit(run, ["exposure"]), list[Finding])
    assert_type(tt.report(run), Report)
    assert_type(tt.simulate(3, seed=0), list[Document])
    version: str = tt.__version__
    return [version, *certificate.words]
"""


def test_a_user_of_the_package_gets_types(tmp_path: Path) -> None:
    """Checked strictly under the project's own settings, whose cache `make lint` has filled."""
    pytest.importorskip("mypy.api")
    (tmp_path / "downstream.py").write_text(DOWNSTREAM)
    (tmp_path / "wrong.py").write_text("import taciturn as tt\ntt.read(1)\ntt.plan('crt')\n")
    options = [
        "--config-file",
        str(ROOT / "pyproject.toml"),
        "--cache-dir",
        str(ROOT / ".mypy_cache"),
        "--no-error-summary",
    ]
    files = [str(tmp_path / "downstream.py"), str(tmp_path / "wrong.py")]
    done = subprocess.run([sys.executable, "-m", "mypy", *options, *files], capture_output=True, text=True, cwd=ROOT)
    lines = [line for line in done.stdout.splitlines() if "error:" in line]
    assert [line.split(":")[1] for line in lines if "wrong.py" in line] == ["2", "3"], done.stdout + done.stderr
    assert not [line for line in lines if "wrong.py" not in line]
