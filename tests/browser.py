"""Debian's Chromium, driven by Playwright, for tests that look at a page as a reader would."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
NEEDS_CHROMIUM = pytest.mark.skipif(
    CHROMIUM is None and os.environ.get("CI") != "true", reason="no Chromium on this machine"
)


@contextmanager
def chromium() -> Iterator[Any]:
    """A headless browser, closed at the end."""
    from playwright.sync_api import sync_playwright

    assert CHROMIUM, "CI needs Chromium for this test"
    with sync_playwright() as play:
        browser = play.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"]
        )
        yield browser
        browser.close()
