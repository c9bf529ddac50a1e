"""A browser without a network, for tests of what the site does in a reader's hands."""

import asyncio
import importlib.util
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from autograder.site.page_body import element_files
from tfcourse.lessons.explorers.base import Explorer

from ..tfcourse.lessons.explorers.examples import documented_code

ROOT = Path(__file__).parents[2]
STATIC = ROOT / "book" / "_static"


@pytest.fixture
def open_page(page: "Page", tmp_path: Path) -> Callable[..., "Page"]:  # noqa: F821
    """Open a page from the disk that shows explorers, with the files that a page of the site loads for them.

    The function takes explorers and, by keyword, the `theme`, the `width`, another page to open it `on`, and HTML with `elements` whose
    files are loaded although the page does not show them yet. The example for contributors has its script, too.
    """
    (tmp_path / "step-explorer.js").write_text(documented_code()["js"], encoding="utf-8")
    static = (STATIC, tmp_path)

    def open_it(
        *explorers: Explorer,
        theme: str = "light",
        on: Any = page,
        width: int = 1000,
        elements: str = "",
    ) -> Any:
        cells = "".join(
            f'<div class="cell"><div class="cell_output"><div class="output text_html">{explorer._repr_html_()}</div></div></div>'
            for explorer in explorers
        )
        files = [
            next(folder / name for folder in static if (folder / name).is_file())
            for name in element_files(cells + elements, static)
        ]
        styles = [*theme_styles(), STATIC / "custom.css", *(file for file in files if file.suffix == ".css")]
        links = "".join(f'<link rel="stylesheet" href="{style.as_uri()}">' for style in styles)
        scripts = "".join(f'<script src="{file.as_uri()}"></script>' for file in files if file.suffix == ".js")
        (tmp_path / "page.html").write_text(
            f'<!doctype html><html lang="en" data-theme="{theme}"><head><meta charset="utf-8"><title>Figures</title>'
            f'{links}{scripts}</head><body style="display: block"><main class="bd-content" '
            f'style="display: block; max-width: 46rem; margin: auto"><h1>Figures</h1>{cells}</main></body></html>',
            encoding="utf-8",
        )
        on.set_viewport_size({"width": width, "height": 900})
        on.goto((tmp_path / "page.html").as_uri())
        return on

    return open_it


def theme_styles() -> list[Path]:
    """The styles of the theme that the site uses."""
    spec = importlib.util.find_spec("pydata_sphinx_theme")
    assert spec is not None
    assert spec.origin is not None
    return [Path(spec.origin).parent / "theme/pydata_sphinx_theme/static/styles/pydata-sphinx-theme.css"]


# Of two colours, or of two lists of colours that are painted one over the other.
CONTRAST = """([first, second]) => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const luminance = (colours) => {
    canvas.clearRect(0, 0, 1, 1);
    for (const colour of [colours].flat()) {
      canvas.fillStyle = colour;
      canvas.fillRect(0, 0, 1, 1);
    }
    const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3).map((byte) => {
      const part = byte / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const [high, low] = [luminance(first), luminance(second)].sort((a, b) => b - a);
  return (high + 0.05) / (low + 0.05);
}"""


@pytest.fixture
def contrast(page: "Page") -> Callable[[str, str], float]:  # noqa: F821
    """The contrast of a property's colour, of the first element of a selector, with the ground of the first figure."""

    def measure(selector: str, property_: str) -> float:
        colour, ground = (
            page.locator(where).first.evaluate(f"element => getComputedStyle(element).getPropertyValue('{name}')")
            for where, name in ((selector, property_), (".explorer-figure", "background-color"))
        )
        ratio: float = page.evaluate(CONTRAST, [colour, ground])
        return ratio

    return measure


@pytest.fixture
def page(chromium: "Browser") -> Iterator["Page"]:  # noqa: F821
    """An empty page without a network. At the end of the test it must have neither logged an error nor asked for anything outside.

    A test that wants errors, or a page without JavaScript, makes its own context from `chromium`.
    """
    complaints: list[str] = []
    with _offline_page(chromium, complaints) as page:
        yield page
    assert not complaints, f"the page complained: {complaints}"


@pytest.fixture(scope="module")
def _reused_page(chromium: "Browser") -> Iterator[tuple["Page", list[str]]]:  # noqa: F821
    complaints: list[str] = []
    with _offline_page(chromium, complaints) as page:
        yield page, complaints


@pytest.fixture
def reused_page(_reused_page: tuple["Page", list[str]]) -> Iterator["Page"]:  # noqa: F821
    """Like `page`, but all tests of a file have the same one: a new page takes as long as a short test.

    It is for tests that leave no settings behind: each loads its document anew.
    """
    page, complaints = _reused_page
    page.mouse.move(0, 0)
    yield page
    page.goto("about:blank")
    complained = complaints[:]
    complaints.clear()
    assert not complained, f"the page complained: {complained}"


@contextmanager
def listening(start: Callable[[], list[tuple[Any, str]]]) -> Iterator[list[str]]:
    """Yield the addresses of servers that run in a thread of their own; `start` returns each with its address."""
    addresses: list[str] = []
    loops: list[asyncio.AbstractEventLoop] = []
    ready, end = threading.Event(), asyncio.Event()

    async def serve() -> None:
        loops.append(asyncio.get_running_loop())
        servers = start()
        addresses.extend(address for _, address in servers)
        ready.set()
        await end.wait()
        for server, _ in servers:
            server.stop()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert ready.wait(30)
    yield addresses
    loops[0].call_soon_threadsafe(end.set)
    thread.join()


@pytest.fixture
def online(chromium: "Browser") -> Iterator[Callable[..., Any]]:  # noqa: F821
    """Open an address in a browser that may reach this machine; an error, such as a refusal by the CSP, fails the test."""
    contexts, faults = [], []

    def open_page(address: str, **options: Any) -> Any:
        contexts.append(chromium.new_context(**options))
        page = contexts[-1].new_page()
        page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.goto(address)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert [fault for fault in faults if "409" not in fault] == []


@contextmanager
def _offline_page(chromium: "Browser", complaints: list[str]) -> Iterator["Page"]:  # noqa: F821
    """Yield a page without a network, whose errors and requests to other places go to a list."""
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


@pytest.fixture(scope="module")
def axe(chromium: "Browser") -> Any:  # noqa: F821 - without a browser, tests are skipped before this one can fail
    """The rules of accessibility. They are in the extra `dev` with the browser's driver: whoever lacks them is told so, and not spared."""
    try:
        from axe_playwright_python.sync_playwright import Axe
    except ImportError:
        pytest.fail("needs axe: pip install 'tfcourse[dev]'", pytrace=False)
    return Axe()


# What reports and the pages of the servers have to pass.
STRICT = {
    "preload": False,
    "runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]},
}


def objections(axe: Any, page: Any) -> list[str]:
    """What axe objects to on the page that is open."""
    violations = axe.run(page, options=STRICT).response["violations"]
    return [
        f"{item['id']}: {node['html'][:120]}: {node['failureSummary']}" for item in violations for node in item["nodes"]
    ]


def _is_local(url: str) -> bool:
    return url.startswith(("file:", "data:", "blob:", "about:"))
