"""Build the site without some chapters, and adapt references to them.

The configuration value ``tfcourse_chapters`` lists the chapters of the site; if it is empty, the site has all chapters. The table of
contents omits the pages of other chapters and of modules that only they use. References to these pages become text.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

from autograder.checking.exercise import Exercise
from autograder.course.authoring.chapter import Chapter, load_chapters

_LABEL = re.compile(r"^\(([^()\s]+)\)=\s*$|^:(?:name|label): *(\S+)", re.MULTILINE)
_SECTION = re.compile(r"^\(([^()\s]+)\)=\n+#+ (.+)$", re.MULTILINE)
_DOCUMENT = re.compile(r"chapters/([^/]+)/(lesson|exercises)")
# A reference that stands this close behind a chapter's number need not repeat it.
_NEAR = 80


def site_chapters(root: Path, names: Collection[str]) -> list[Chapter]:
    """Return the site's chapters with exercises, in lecture order; all of the course's without names."""
    return [chapter for chapter in load_chapters(root) if not names or chapter.name in names]


def closed_chapters(root: Path, names: Collection[str]) -> list[str]:
    """Return the names of the course's chapters that are not on the site."""
    every = {path.parent.name for path in (root / "chapters").glob("*/*.md")}
    return sorted(every - set(names)) if names else []


def closed_modules(registry: Mapping[str, Exercise], closed: Collection[str]) -> set[str]:
    """Return the names of modules whose exercises all belong to closed chapters."""
    chapters_of: dict[str, set[str]] = {}
    for exercise in registry.values():
        chapters_of.setdefault(exercise.reference.__module__, set()).add(exercise.chapter)
    return {module for module, names in chapters_of.items() if names <= set(closed)}


def closed_documents(root: Path, names: Collection[str]) -> set[str]:
    """Return the documents that are not on the site: pages of closed chapters, and of modules that only these use."""
    closed = closed_chapters(root, names)
    if not closed:
        return set()
    pages = {f"chapters/{name}/{kind}" for name in closed for kind in ("lesson", "exercises")}
    modules = closed_modules(load_chapters(root)[0].registry, closed)
    return pages | {f"book/api/{module.rpartition('.')[2]}" for module in modules}


def remove_closed_documents(contents: dict[str, Any], closed: Collection[str]) -> dict[str, Any]:
    """Return a table of contents without closed documents."""

    def prune(value: Any) -> Any:
        if isinstance(value, list):
            return [prune(item) for item in value if not (isinstance(item, dict) and item.get("file") in closed)]
        return {key: prune(item) for key, item in value.items()} if isinstance(value, dict) else value

    result: dict[str, Any] = prune(contents)
    return result


def register_closed_chapters(app: Sphinx) -> None:
    """Register the configuration value, and the handlers that adapt pages to missing chapters."""
    app.add_config_value("tfcourse_chapters", [], "env", [list, tuple])
    app.connect("source-read", _list_only_cited)
    app.connect("missing-reference", _write_as_text)


def _list_only_cited(app: Sphinx, docname: str, source: list[str]) -> None:
    if app.config.tfcourse_chapters:
        source[0] = re.sub(r"(```\{bibliography\}\n):all:\n", r"\1", source[0])


def _write_as_text(app: Sphinx, env: BuildEnvironment, node: pending_xref, content: nodes.Node) -> nodes.Node | None:
    """Return the text that replaces a reference into a closed chapter; None for any other reference."""
    root, closed = Path(app.srcdir), closed_chapters(Path(app.srcdir), app.config.tfcourse_chapters)
    if not closed:
        return None
    target = str(node.get("reftarget", ""))
    if node.get("refdomain") == "py":
        return content if _is_course_module(target, node) else None
    if document := _DOCUMENT.fullmatch(absolute_document(target, str(node.get("refdoc", "")))):
        name, title = document[1], "" if document[2] == "lesson" else "the exercises of "
    else:
        name, title = _find_label_chapter(root, closed, target), ""
    if name not in closed:
        return None
    if node.get("refexplicit"):
        return nodes.Text(content.astext())
    chapter = f"chapter {name.partition('_')[0]}"
    heading = _section_headings(root, name).get(target, "")
    return nodes.Text(heading if heading and chapter in _preceding_text(node).casefold() else title + chapter)


def absolute_document(target: str, page: str) -> str:
    """Return the document that a page refers to, relative to the site's root.

    Args:
        target: what the page says, such as ``../04_multi_head/lesson`` or ``/chapters/04_multi_head/lesson.md``.
        page: the page, such as ``chapters/03_scaled_dot_product/lesson``.
    """
    relative = target.removesuffix(".md")
    inside = relative if relative.startswith("/") else posixpath.join(posixpath.dirname(page), relative)
    candidate = posixpath.normpath(inside).lstrip("/")
    # A name from the root without a slash in front is found, too.
    return candidate if _DOCUMENT.fullmatch(candidate) else relative.lstrip("/")


def _is_course_module(target: str, node: pending_xref) -> bool:
    return target.startswith("tfcourse.") or str(node.get("py:module") or "").startswith("tfcourse")


def _find_label_chapter(root: Path, closed: Sequence[str], label: str) -> str:
    return next((name for name in closed if label in _chapter_labels(root, name)), "")


def _chapter_labels(root: Path, chapter: str) -> set[str]:
    texts = (path.read_text(encoding="utf-8") for path in (root / "chapters" / chapter).glob("*.md"))
    return {(match[1] or match[2]).casefold() for text in texts for match in _LABEL.finditer(text)}


def _section_headings(root: Path, chapter: str) -> dict[str, str]:
    text = (root / "chapters" / chapter / "lesson.md").read_text(encoding="utf-8")
    return {label: re.sub(r"[$`]", "", heading) for label, heading in _SECTION.findall(text)}


def _preceding_text(node: nodes.Element) -> str:
    """Return the end of the text that precedes a node in its paragraph."""
    return "".join(reversed(list(_preceding_texts(node))))[-_NEAR:]


def _preceding_texts(node: nodes.Element) -> Iterator[str]:
    while node.parent is not None and not isinstance(node, nodes.paragraph):
        position = node.parent.index(node)
        yield from (child.astext() for child in reversed(node.parent.children[:position]))
        node = node.parent


def remove_closed_links(page: str, closed: Collection[str]) -> str:
    """Replace the links to pages of closed chapters in a page's HTML by their text."""
    if not closed:
        return page
    names = "|".join(map(re.escape, sorted(closed)))
    link = rf'<a\b[^>]*?\bhref="(?:[^"#]*/)?(?:{names})/(?:lesson|exercises)\.html[^"]*"[^>]*>(.*?)</a>'
    return re.sub(link, r"\1", page, flags=re.DOTALL)
