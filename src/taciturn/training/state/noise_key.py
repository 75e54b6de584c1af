"""What a step done again needs to be the same release: the run's secret key, and a machine on which sums repeat.

checkpoints/noise.key          32 bytes (mode 0600) from the operating system; until the run ends
checkpoints/environment.json   what the sums of the process that wrote the last steps depended on
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Callable, Mapping
from hashlib import blake2b
from pathlib import Path

import torch
from torch import nn

from taciturn.errors import DataError
from taciturn.persample.capture import trainable_names
from taciturn.persample.isolated import product_precisions
from taciturn.text.atomic import write_bytes
from taciturn.training.distributed.processes import World

KEY, ENVIRONMENT = "noise.key", "environment.json"
KEY_BYTES = 32

Environment = Mapping[str, str]


def new_key(folder: Path) -> bytes:
    """A key from the operating system's entropy, on the disk in ``folder`` (mode 0700) before it is used."""
    folder.chmod(0o700)
    key = os.urandom(KEY_BYTES)
    write_bytes(folder / KEY, key, 0o600)
    sync_folder(folder)
    return key


def read_key(folder: Path) -> bytes | None:
    """The run's key, None where there is none. Raises DataError for a file that holds none."""
    try:
        key = (folder / KEY).read_bytes()
    except FileNotFoundError:
        return None
    if len(key) != KEY_BYTES:
        raise DataError(
            f"{folder / KEY} is damaged: expected {KEY_BYTES} bytes, found {len(key)}; remove it to go on under a new key "
            "(steps after the checkpoint are then paid twice)"
        )
    return key


def destroy_key(folder: Path) -> None:
    """Overwrite and remove the key, as far as the file system overwrites in place."""
    for path in (folder / KEY, folder / f"{KEY}.partial"):
        try:
            with path.open("r+b") as file:
                file.write(bytes(KEY_BYTES))
                file.flush()
                os.fsync(file.fileno())
        except FileNotFoundError:
            continue
        path.unlink()
    (folder / ENVIRONMENT).unlink(missing_ok=True)
    sync_folder(folder)


def derived(key: bytes, plan_key: str, branch: str) -> bytes:
    """The master secret of a run's streams (keystream.py) since the mark ``branch`` of its ledger: another after each, so
    that nothing is drawn twice for a step that is done anew."""
    return blake2b(f"{plan_key} {branch}".encode(), digest_size=32, key=key, person=b"taciturn-attempt").digest()


def environment(
    facts: Callable[[], Mapping[str, str]], token_budget: int, device: torch.device, world: World
) -> Environment | None:
    """What sums depend on, to the bit, ``facts`` about plan, libraries, model and records among it; None where they do not
    repeat: on a GPU, or over several processes."""
    if world.size > 1 or device.type != "cpu":
        return None
    return {
        **facts(),
        "train.token_budget": str(token_budget),
        "the number of threads": str(torch.get_num_threads()),
        "the machine": _machine(),
        "the instructions that torch uses": torch.backends.cpu.get_cpu_capability(),
        "the precision of matrix products": _precisions(),
        "settings of the libraries": " ".join(f"{k}={v}" for k, v in sorted(os.environ.items()) if k.startswith(_SET)),
    }


def repeatable(here: Environment | None, then: Environment | None) -> str | None:
    """None where sums are those of ``then`` to the bit, else why not, in words."""
    if here is None or then is None:
        return "sums do not repeat bit for bit on a GPU, over several processes or with train.frozen_cache"
    changed = sorted(name for name in here.keys() | then.keys() if here.get(name) != then.get(name))
    return f"another value than before: {', '.join(changed)}" if changed else None


def keep_environment(folder: Path, here: Environment | None) -> None:
    """Leave with the key what this process's sums depend on."""
    write_bytes(folder / ENVIRONMENT, json.dumps(here and dict(here), sort_keys=True).encode(), 0o600)


def kept_environment(folder: Path) -> Environment | None:
    """What :func:`keep_environment` left, None where it is not there or not to be read."""
    try:
        kept = json.loads((folder / ENVIRONMENT).read_bytes())
    except (OSError, ValueError):
        return None
    return kept if isinstance(kept, dict) else None


def release_digest(model: nn.Module, clip: float | None, table: bytes = b"") -> str:
    """16 bytes in hex: a digest of what a noised step left in ``.grad``, of the clip norm of the next, and of a table."""
    digest = blake2b(repr(clip).encode() + table, digest_size=16)
    for p, name in trainable_names(model).items():
        if p.grad is not None:
            digest.update(name.encode())
            digest.update(p.grad.detach().contiguous().view(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def sync_folder(folder: Path) -> None:
    """Force the names in ``folder`` onto the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


_SET = ("MKL_CBWR", "MKL_DYNAMIC", "MKL_ENABLE", "DNNL_", "ONEDNN_")
_MOVES = (
    "processor",
    "cpu mhz",
    "bogomips",
    "core id",
    "apicid",
    "initial apicid",
    "physical id",
    "cpu cores",
    "siblings",
)


def _precisions() -> str:
    """Of a processor. Torch's "none" (nobody asked for less) and "ieee" are one arithmetic."""
    found = product_precisions()
    word = found if isinstance(found, str) else found["mkldnn.matmul"].replace("none", "ieee")
    return f"{word} {torch.backends.mkldnn.enabled}"


def _machine() -> str:
    """Model, caches and instructions of the processor, but for what differs from core to core or moment to moment."""
    try:
        core = Path("/proc/cpuinfo").read_text().partition("\n\n")[0].splitlines()
    except OSError:
        core = []
    facts = [line for line in core if line.partition("\t")[0].partition(":")[0].strip().lower() not in _MOVES]
    return blake2b("\n".join([platform.machine(), platform.processor(), *facts]).encode(), digest_size=16).hexdigest()
