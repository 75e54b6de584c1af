"""Input and output on an object store, with worker processes of their own: what comes out is what files on disk give."""

from __future__ import annotations

import io
import json
import os
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from processes import ended, until
from taciturn.errors import Unreachable

s3fs = pytest.importorskip("s3fs", reason="needs s3fs: pip install s3fs")
pytest.importorskip("moto", reason="needs a local S3 server: pip install 'moto[server]'")

KEY, SECRET = "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"

SCREEN = """
import sys
from taciturn.screening import policy, screen
from taciturn.text.readers import corpus, read
corpus.piece_size = lambda _: 4000
if sys.argv[3] == "far":  # as on a cluster: no worker sees the folder
    from taciturn.screening.engines import ray
    ray.mark = lambda folder: b"another"
if sys.argv[1].endswith("/killed"):  # while the fifth file is put
    import os, signal
    from s3fs import S3FileSystem
    plain, files = S3FileSystem.put_file, []
    def put_file(self, *paths):
        files.append(paths)
        if len(files) == 5:
            os.kill(os.getpid(), signal.SIGKILL)
        return plain(self, *paths)
    S3FileSystem.put_file = put_file
if __name__ == "__main__":
    screen(read(*sys.argv[4:], user="user"), policy("phone", "email"), policy("conservative"),
           out=sys.argv[1].removesuffix("/killed"), workers=int(sys.argv[2]),
           engine="local" if sys.argv[3] == "local" else "ray")
"""


def row(i: int) -> dict[str, str]:
    return {
        "text": f"hello there.\nmy name is Rhonda Young {i % 7}, call 980.322.{i % 50:04d}. Fine!",
        "user": f"u{i % 5}",
    }


def parquet() -> bytes:
    held = io.BytesIO()
    pq.write_table(pa.Table.from_pylist([row(i) for i in range(200)]), held, row_group_size=50)
    return held.getvalue()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[dict[str, str], Path]]:
    """The environment of who reads from a local S3, and a folder with the same files as its bucket."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    server = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    def answers() -> bool:
        try:
            return bool(urllib.request.urlopen(f"{url}/moto-api/").status == 200)
        except OSError:
            return False

    try:
        until(answers, server)
        system = s3fs.S3FileSystem(key=KEY, secret=SECRET, endpoint_url=url, skip_instance_cache=True)
        system.mkdir("bucket")
        folder = tmp_path_factory.mktemp("same")
        lines = "".join(json.dumps(row(i)) + "\n" for i in range(300)).encode()
        for name, data in {"mail/a.jsonl": lines, "mail/deep/b.jsonl": lines, "mail/c.parquet": parquet()}.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)
            system.pipe_file(f"bucket/{name}", data)
        told = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_ENDPOINT_URL": url}
        yield {**os.environ, **told, "AWS_DEFAULT_REGION": "us-east-1", "XDG_DATA_HOME": f"{folder}-data"}, folder
    finally:
        server.kill()
        server.wait()


def screened(tmp_path: Path, environment: dict[str, str], out: str, workers: int, engine: str, *paths: str) -> str:
    """What the process said. The folder is then at tmp_path / out, if it ended well and that is no URL."""
    script = tmp_path / "screen_it.py"
    script.write_text(SCREEN)
    process = subprocess.Popen(
        [sys.executable, str(script), out if "://" in out else str(tmp_path / out), str(workers), engine, *paths],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return str(ended(process)[0][0])


def content(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_workers_read_from_s3_what_they_read_from_disk(store: tuple[dict[str, str], Path], tmp_path: Path) -> None:
    environment, folder = store
    said = screened(tmp_path, environment, "disk", 1, "local", f"{folder}/mail")
    said += screened(tmp_path, environment, "s3", 2, "local", "s3://bucket/mail")
    assert content(tmp_path / "disk") == content(tmp_path / "s3"), said
    assert len(content(tmp_path / "s3")) > 20
    for data in (said.encode(), *content(tmp_path / "s3").values()):
        assert KEY.encode() not in data
        assert SECRET.encode() not in data


@pytest.mark.parametrize("nodes", ["near", "far"])
def test_ray_reads_from_s3(store: tuple[dict[str, str], Path], tmp_path: Path, nodes: str) -> None:
    """Far: on nodes that see nothing of the output folder, whose files come back."""
    pytest.importorskip("ray", reason="needs the ray extra")
    environment, folder = store
    files = "mail/*.jsonl", "mail/deep/*"
    said = screened(tmp_path, environment, "disk", 1, "local", *(f"{folder}/{each}" for each in files))
    said += screened(tmp_path, environment, "s3", 2, nodes, *(f"s3://bucket/{each}" for each in files))
    assert content(tmp_path / "disk") == content(tmp_path / "s3"), said


def test_wrong_credentials_and_buckets_are_named_without_them(
    store: tuple[dict[str, str], Path], tmp_path: Path
) -> None:
    environment, _ = store
    nowhere = {**environment, "AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_MAX_ATTEMPTS": "1"}
    said = screened(tmp_path, nowhere, "out", 1, "local", "s3://bucket/mail/a.jsonl")
    assert Unreachable.__name__ in said
    assert "s3://bucket/mail/a.jsonl cannot be read from its store" in said
    assert SECRET not in said
    said = screened(tmp_path, environment, "out", 1, "local", "s3://elsewhere/a.jsonl")
    assert "no such file: s3://elsewhere/a.jsonl" in said
    assert not (tmp_path / "out").exists()


def fetched(tmp_path: Path, environment: dict[str, str], url: str) -> tuple[str, Path]:
    """What a process said that loaded a screened corpus on another machine, and where its copy would be."""
    home = tmp_path / "another"
    script = "import sys, taciturn as tt; print(len(tt.load_screened(sys.argv[1]).texts('redacted')))"
    process = subprocess.Popen(
        [sys.executable, "-c", script, url],
        env={**environment, "XDG_DATA_HOME": str(home)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return str(ended(process)[0][0]), home / "taciturn" / "screened"


@pytest.mark.parametrize("nodes", ["local", "far"])
def test_into_s3_goes_what_goes_into_a_folder(store: tuple[dict[str, str], Path], tmp_path: Path, nodes: str) -> None:
    """Far: Ray, on nodes that see nothing of the folder of the one who gave the command."""
    if nodes == "far":
        pytest.importorskip("ray", reason="needs the ray extra")
    environment, folder = store
    url = f"s3://bucket/screened/{nodes}/"
    said = screened(tmp_path, environment, "disk", 1, "local", f"{folder}/mail/a.jsonl")
    said += screened(tmp_path, environment, url, 2, nodes, "s3://bucket/mail/a.jsonl")
    number, copies = fetched(tmp_path, environment, url)
    assert int(number) > 300, said + number
    [copy] = (path for path in copies.iterdir() if path.is_dir())
    assert content(tmp_path / "disk") == content(copy)
    for data in (said.encode(), *content(Path(environment["XDG_DATA_HOME"])).values()):
        assert KEY.encode() not in data
        assert SECRET.encode() not in data


def test_killed_while_it_was_put_into_s3(store: tuple[dict[str, str], Path], tmp_path: Path) -> None:
    environment, folder = store
    paths = f"{folder}/mail/deep/b.jsonl", f"{folder}/mail/c.parquet"
    screened(tmp_path, environment, "disk", 1, "local", *paths)
    screened(tmp_path, environment, "s3://bucket/half/killed", 1, "local", *paths)
    assert "one that is still being written" in fetched(tmp_path, environment, "s3://bucket/half")[0]
    said = screened(tmp_path, environment, "s3://bucket/half", 1, "local", *paths)
    fetched(tmp_path, environment, "s3://bucket/half")
    [copy] = (path for path in (tmp_path / "another/taciturn/screened").iterdir() if path.is_dir())
    assert content(tmp_path / "disk") == content(copy), said


def test_output_that_cannot_be_written_is_named_before_anything_is_screened(
    store: tuple[dict[str, str], Path], tmp_path: Path
) -> None:
    environment, folder = store
    none = {key: value for key, value in environment.items() if "AWS_" not in key or "URL" in key}
    none |= {"AWS_EC2_METADATA_DISABLED": "true", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null"}
    nowhere = {**environment, "AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_MAX_ATTEMPTS": "1"}
    for told, url, words in (
        (none, "s3://bucket/nobody", "s3://bucket/nobody cannot be read from its store (NoCredentialsError)"),
        (nowhere, "s3://bucket/nobody", "s3://bucket/nobody cannot be read from its store"),
        (environment, "s3://elsewhere/x", "s3://elsewhere/x cannot be written: no such bucket"),
    ):
        said = screened(tmp_path, {**told, "XDG_DATA_HOME": str(tmp_path)}, url, 1, "local", f"{folder}/mail/a.jsonl")
        assert words in said
        assert SECRET not in said
    assert not list(tmp_path.rglob("*.parquet*"))
