"""Input on an object store, read by worker processes of their own: what comes out is what the same files on disk give."""

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
if __name__ == "__main__":
    screen(read(*sys.argv[4:], user="user"), policy("phone", "email"), policy("conservative"),
           out=sys.argv[1], workers=int(sys.argv[2]), engine="local" if sys.argv[3] == "local" else "ray")
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
        yield {**os.environ, **told, "AWS_DEFAULT_REGION": "us-east-1"}, folder
    finally:
        server.kill()
        server.wait()


def screened(tmp_path: Path, environment: dict[str, str], out: str, workers: int, engine: str, *paths: str) -> str:
    """What the process said. The folder is then at tmp_path / out, if it ended well."""
    script = tmp_path / "screen_it.py"
    script.write_text(SCREEN)
    process = subprocess.Popen(
        [sys.executable, str(script), str(tmp_path / out), str(workers), engine, *paths],
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
