"""A browser without a network, for tests of what the site does in a reader's hands."""

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture
def page(chromium: "Browser") -> Iterator["Page"]:  # noqa: F821
    """An empty page without a network. At the end of the test it must have neither logged an error nor asked for anything outside.

    A test that wants errors, or a page without JavaScript, makes its own context from `chromium`.
    """
    complaints: list[str] = []
    context = chromium.new_context(offline=True, viewport={"width": 1200, "height": 900})
    context.set_default_timeout(120_000)  # a machine that has much to do, or that is held up, is no fault of the site's
    page = context.new_page()
    page.on(
        "console", lambda message: complaints.append(message.text) if message.type in ("error", "warning") else None
    )
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on(
        "request", lambda request: None if _is_local(request.url) else complaints.append(f"asked for {request.url}")
    )
    yield page
    context.close()
    assert not complaints, f"the page complained: {complaints}"


@pytest.fixture(scope="module")
def axe(chromium: "Browser") -> Any:  # noqa: F821 - without a browser, tests are skipped before this one can fail
    """The rules of accessibility. They are in the extra `dev` with the browser's driver: whoever lacks them is told so, and not spared."""
    try:
        from axe_playwright_python.sync_playwright import Axe
    except ImportError:
        pytest.fail("needs axe: pip install 'tfcourse[dev]'", pytrace=False)
    return Axe()


def _is_local(url: str) -> bool:
    return url.startswith(("file:", "data:", "blob:", "about:"))
