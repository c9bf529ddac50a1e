"""Shorten the sidebar: one line for a chapter's two pages, and folds for the details for instructors and the pages of the package.

The table of contents stays flat, because the theme gives nested entries buttons that screen readers cannot name.
"""

from __future__ import annotations

import re

_ITEM = re.compile(r'<li class="(?P<classes>[^"]*)"><a (?P<attributes>[^>]*)>(?P<title>.*?)</a></li>', re.DOTALL)
_EXERCISES = re.compile(r"^(\d\d) · Exercises$")
# Titles that begin so are folded, each kind below its heading. What the heading says already is not repeated on each line.
_FOLDS = {"tfcourse.": "Package <code>tfcourse</code>", "Teaching · ": "Teaching, in detail"}
_DROPPED = "Teaching · "


def shortened(navigation: str) -> str:
    """Return the sidebar's list of pages with fewer lines."""
    return re.sub(
        r"(<ul[^>]*>)(.*?)(</ul>)",
        lambda match: match[1] + _all_folded(_joined(match[2])) + match[3],
        navigation,
        flags=re.DOTALL,
    )


def _all_folded(items: str) -> str:
    for prefix, heading in _FOLDS.items():
        items = _folded(items, prefix, heading)
    return items


def _joined(items: str) -> str:
    """Put the link to a chapter's exercises into the entry of its lesson, which stands before it."""
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


def _folded(items: str, prefix: str, heading: str) -> str:
    """Fold the pages whose titles begin with a prefix; the fold is open on one of them."""
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
    others = _without(items[first:last], pages)
    return items[:first] + fold + others + items[last:]


def _without(items: str, pages: list[re.Match[str]]) -> str:
    for match in pages:
        items = items.replace(match[0], "", 1)
    return items.strip()
