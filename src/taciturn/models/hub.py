"""Whether the model hub answers: asked once, for seconds. Its library would ask for half a minute, aloud, file by file."""

from __future__ import annotations

import re
import time
from functools import lru_cache
from pathlib import Path

from huggingface_hub import constants, get_session, snapshot_download
from huggingface_hub.errors import LocalEntryNotFoundError

from taciturn.errors import UsageError

PATIENCE = 3.0
"""Seconds that one answer may take."""
FRESH = 60
"""Seconds for which an answer is believed."""
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[\w.-]+)?")


def is_name(spec: str) -> bool:
    """Whether a model can only be one of the hub's: no file or folder here, and of the form of a name there.

    >>> is_name("gpt2"), is_name("owner/model"), is_name("./model"), is_name("a/b/c")
    (True, True, False, False)
    """
    return _NAME.fullmatch(spec) is not None and not Path(spec).exists()


def reached() -> bool:
    """Whether the hub answers, and may be asked (HF_HUB_OFFLINE)."""
    return not constants.HF_HUB_OFFLINE and _answers(int(time.monotonic() // FRESH))


@lru_cache(maxsize=1)
def _answers(_: int) -> bool:
    try:
        get_session().head(constants.ENDPOINT, timeout=PATIENCE)  # the library's own client, which knows of proxies
    except Exception:  # of whichever HTTP client the library has
        return False
    return True


def downloaded(spec: str) -> str:
    """The folder to which a model was downloaded before. Raises UsageError if it was not."""
    try:
        return str(snapshot_download(spec, local_files_only=True))
    except LocalEntryNotFoundError as error:
        why = "is not asked, as HF_HUB_OFFLINE is set" if constants.HF_HUB_OFFLINE else "was not reached"
        raise UsageError(
            f"{spec!r} cannot be loaded: it is no file or folder here, was not downloaded before, and the hub "
            f"{constants.ENDPOINT} {why}; name a folder with config.json and *.safetensors, or fetch it where there is a "
            f"network: hf download {spec}"
        ) from error
