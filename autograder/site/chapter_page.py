"""Add a bar of links to a chapter's two pages, and header buttons for the students' files."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

_DOCNAME = re.compile(r"^chapters/([^/]+)/(lesson|exercises)$")
_TITLE_END = "</h1>"
# Pages among a chapter's files, which are read and not downloaded.
PAGES = {"find-the-bug.html": "Find the bug"}


@dataclass(frozen=True)
class ChapterPage:
    """A page that belongs to a chapter."""

    chapter: str  # the chapter's name, for example ``"03_scaled_dot_product"``
    kind: str  # ``"lesson"`` or ``"exercises"``

    @classmethod
    def from_document(cls, docname: str) -> ChapterPage | None:
        """Return the chapter page for a document name; None for any other document."""
        match = _DOCNAME.match(docname)
        return cls(*match.groups()) if match else None


def chapter_bar(
    page: ChapterPage,
    documents: Sequence[str],
    downloads: Sequence[tuple[str, str]],
    link: Callable[[str], str],
    file: Callable[[str], str],
    deck: str = "",
) -> str:
    """Return the bar under a chapter's title as HTML: lesson, exercises, slides and downloads.

    Args:
        documents: the site's documents; a page that does not exist is not linked.
        downloads: pairs of file name and address below the site's root.
        link: gives the relative address of a document.
        file: returns the relative address of a file below the site's root.
        deck: the name of the chapter's deck, if the site has its slides.
    """
    items = []
    for kind, label in (("lesson", "Lesson"), ("exercises", "Exercises")):
        docname = f"chapters/{page.chapter}/{kind}"
        if kind == page.kind:
            items.append(f'<span class="tfc-here" aria-current="page">{label}</span>')
        elif docname in documents:
            items.append(f'<a href="{escape(link(docname))}">{label}</a>')
    if deck:
        items.append(f'<a href="{escape(file(f"slides/{deck}.html"))}">Slides</a>')
    for name, address in downloads:
        if name in PAGES:
            items.append(f'<a href="{escape(file(address))}">{PAGES[name]}</a>')
            continue
        kinds = {"_lesson.ipynb": "Lesson notebook", ".ipynb": "Exercise notebook", ".whl": "Student package"}
        label = next((kind for end, kind in kinds.items() if name.endswith(end)), name)
        items.append(
            f'<a class="tfc-download" download href="{escape(file(address))}" title="{escape(name)}">{escape(label)}'
            '<span class="visually-hidden"> (download)</span></a>'
        )
    entries = "".join(f"<li>{item}</li>" for item in items)
    return f'<nav class="tfc-chapter-bar" aria-label="This chapter"><ul>{entries}</ul></nav>'


def deadline_line(text: str) -> str:
    """Return a chapter's deadline as a line under the bar; empty without a deadline."""
    return f'<p class="tfc-deadline">{escape(text)}</p>' if text else ""


def insert_bar(body: str, bar: str) -> str:
    """Insert the bar under the title of a page's body; a body without a title stays unchanged."""
    head, end, rest = body.partition(_TITLE_END)
    return f"{head}{end}{bar}{rest}" if end else body


def header_buttons(
    downloads: Sequence[tuple[str, str]],
    launches: Sequence[tuple[str, str]],
    file: Callable[[str], str],
    other_buttons: Sequence[dict[str, Any]],
) -> list[dict[str, Any]]:
    """Return the buttons of a page's header: downloads, services that open the notebook, and printing.

    The theme's download button offers a page's source, and its launch button opens this source; students need neither for a lesson. So
    these groups are replaced: the students' files, the services that open the released notebook, and printing.

    Args:
        downloads: pairs of file name and address below the site's root.
        launches: pairs of a service's name and address.
        file: returns the relative address of a file below the site's root.
        other_buttons: the theme's other buttons, which are kept.
    """
    buttons: list[dict[str, Any]] = []
    if launches:
        entries = [
            {"type": "link", "text": name, "url": url, "tooltip": f"Open the notebook in {name}"}
            for name, url in launches
        ]
        buttons.append(_button_group("Open the notebook", "fas fa-rocket", "launch-buttons", entries))
    if downloads:
        entries = [
            {"type": "download", "text": name, "url": file(address), "tooltip": f"Download {name}"}
            for name, address in downloads
            if name not in PAGES
        ]
        entries.append(
            {"type": "javascript", "text": "Print or PDF", "icon": "fas fa-print", "javascript": "window.print()"}
        )
        buttons.append(_button_group("Download this chapter", "fas fa-download", "download-buttons", entries))
    else:
        printing = {
            "type": "javascript",
            "javascript": "window.print()",
            "icon": "fas fa-print",
            "tooltip": "Print or save as PDF",
        }
        buttons.append({**printing, "label": "print-button", "classes": "pst-navbar-icon"})
    return buttons + list(other_buttons)


def _button_group(tooltip: str, icon: str, label: str, buttons: list[dict[str, Any]]) -> dict[str, Any]:
    return {"type": "group", "tooltip": tooltip, "icon": icon, "label": label, "buttons": buttons}
