"""Shorten the sidebar: one line for a chapter's two pages, and folds for instructors' details and the package.

The table of contents stays flat, because the theme gives nested entries buttons that screen readers cannot name.
"""

from __future__ import annotations

import re

_ITEM = re.compile(r'<li class="(?P<classes>[^"]*)"><a (?P<attributes>[^>]*)>(?P<title>.*?)</a></li>', re.DOTALL)
_EXERCISES = re.compile(r"^(\d\d) · Exercises$")
# Titles that begin so are folded, each kind below its heading. What the heading says already is not repeated on each line.
_FOLDS = {"tfcourse.": "Package <code>tfcourse</code>", "Teaching · ": "Teaching, in detail"}
_DROPPED = "Teaching · "


def shorten_sidebar(navigation: str) -> str:
    """Return the sidebar's HTML with each chapter's pages in one entry and some pages folded."""
    return re.sub(
        r"(<ul[^>]*>)(.*?)(</ul>)",
        lambda match: match[1] + _fold_all(_join_chapter_pages(match[2])) + match[3],
        navigation,
        flags=re.DOTALL,
    )


def _fold_all(items: str) -> str:
    for prefix, heading in _FOLDS.items():
        items = _fold_pages(items, prefix, heading)
    return items


def _join_chapter_pages(items: str) -> str:
    """Move the link to a chapter's exercises into the preceding entry of its lesson."""
    entries: list[str] = []
    for match in _ITEM.finditer(items):
        number = _EXERCISES.match(match["title"].strip())
        if number is None or not entries:
            entries.append(match[0])
            continue
        label = f"Exercises of chapter {number[1]}"
        classes = f"tfc-side-exercises {'tfc-side-here' if 'current' in match['classes'].split() else ''}".strip()
        attributes = re.sub(r'class="[^"]*"', "", match["attributes"]).strip()
        link = f'<a class="{classes}" {attributes} aria-label="{label}" title="{label}">Ex.</a>'
        entries[-1] = (
            entries[-1].replace('<li class="', '<li class="tfc-side-chapter ', 1).removesuffix("</li>") + f"{link}</li>"
        )
    return "\n".join(["", *entries, ""])


def _fold_pages(items: str, prefix: str, heading: str) -> str:
    """Fold the pages whose titles begin with a prefix; the fold is open on these pages."""
    pages = [match for match in _ITEM.finditer(items) if match["title"].strip().startswith(prefix)]
    if len(pages) < 2:
        return items
    opened = " open" if any("current" in match["classes"].split() for match in pages) else ""
    entries = "\n".join(match[0].replace(_DROPPED, "") for match in pages)
    fold = (
        f'<li class="tfc-side-package"><details{opened}><summary>{heading}</summary>'
        f'<ul class="nav bd-sidenav">{entries}</ul></details></li>'
    )
    first, last = pages[0].start(), pages[-1].end()
    others = _remove_items(items[first:last], pages)
    return items[:first] + fold + others + items[last:]


def _remove_items(items: str, pages: list[re.Match[str]]) -> str:
    for match in pages:
        items = items.replace(match[0], "", 1)
    return items.strip()
