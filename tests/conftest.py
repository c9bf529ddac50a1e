"""What tests in several folders share."""

import shutil
from collections.abc import Iterator

import pytest

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="module")
def chromium() -> Iterator["Browser"]:  # noqa: F821 - playwright is imported where it is needed
    """Debian's chromium, driven by playwright; one process for a module.

    It ends with the module: as long as playwright runs, its thread has an event loop, and no other test there can start one.
    """
    executable = shutil.which("chromium")
    if executable is None:
        pytest.skip("needs a browser, and there is no chromium here: apt-get install chromium")
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright: pip install 'tfcourse[dev]'")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=FLAGS)
        yield browser
        browser.close()
