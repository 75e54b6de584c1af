"""A browser that waits as long as a page takes; that it takes for ever is for pytest's own limit to find."""

from __future__ import annotations

from typing import Any


def launched(playwright: Any, program: str | None) -> Any:
    """Chromium, which is given 30 seconds to start by default."""
    return playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"], timeout=0)


def patient(page: Any) -> Any:
    """The same page, which waits 30 seconds for each thing by default."""
    page.set_default_timeout(0)
    return page
