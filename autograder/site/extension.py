"""The course's Sphinx extension.

- It executes lessons in parallel and caches their outputs per state of the package.
- It bundles MathJax and loads the scripts of interactive figures.
- It adds the students' files to chapters, and links a chapter's two pages and the headings that one quotes from the other.
- It draws the course map, and warns about images without alternative text.

Configuration values, all optional, under ``sphinx: config:`` in ``_config.yml``:

``tfcourse_cache``
    Folder of the execution caches, relative to the course's root.
``tfcourse_cache_sources``
    Folders whose Python files decide which cache is used.
``tfcourse_launch``
    Where released notebooks are published; see :class:`autograder.site.launch_links.LaunchSettings`.
``tfcourse_chapters``
    The chapters of the site; all of the course's if it is empty. ``tfcourse build --chapters`` fills it in.
``tfcourse_downloads``
    Students' files by chapter; ``tfcourse build`` fills it in.
``tfcourse_dates``
    Each chapter's deadline in the course; ``tfcourse build --course`` fills it in.
``tfcourse_slides``
    Names of the decks in the site's folder ``slides``; ``tfcourse build --slides`` fills it in.
``tfcourse_report``
    File for a JSON report of the build; ``tfcourse build`` reads it.
"""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
from pathlib import Path
from typing import Any

import jinja2
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.errors import ConfigError
from sphinx.util import logging

from autograder.course.authoring.execute_lessons import execute_lessons, print_values
from autograder.course.authoring.lesson_cache import SOURCES, execution_cache_path
from autograder.errors import CourseError
from autograder.site.chapter_page import ChapterPage, chapter_bar, deadline_line, header_buttons, insert_bar
from autograder.site.course_map import CourseMap
from autograder.site.downloads import download_links
from autograder.site.front_page.register import register
from autograder.site.incremental import cache_plugin_lookup, pages_to_write
from autograder.site.launch_links import LaunchSettings, launch_links
from autograder.site.lesson_links import link_headings
from autograder.site.page_body import element_files, image_faults
from autograder.site.page_parts.closed_chapters import closed_chapters, register_closed_chapters, remove_closed_links
from autograder.site.page_parts.exercise_notes import annotate_page
from autograder.site.page_parts.notation_page import fold_letters
from autograder.site.page_parts.sidebar import shorten_sidebar
from autograder.site_address import site_address

_LOGGER = logging.getLogger(__name__)
_TEMPLATES = Path(__file__).parent / "templates"
_WORDS = "tfcourse_words"
_LECTURES = "book/teaching/lectures"
_THEME_GROUPS = ("download-buttons", "launch-buttons")
_WORD = re.compile(r"\S*[^\W_]\S*")
# What stands apart: a cell's code and output, what a figure or a table shows with its caption, code, formulas, and what is folded.
_APART = (nodes.figure, nodes.image, nodes.table, nodes.literal_block, nodes.math_block, nodes.raw, nodes.footnote)
_APART_CLASSES = frozenset({"cell", "dropdown", "toggle", "hidden"})
# Authors write a figure's caption under its cell: an emphasised paragraph that begins so.
_CAPTION = re.compile(r"(Figure|Table) \d+\.\d+\.")
# This package carries the whole of MathJax 3, 24 MB, so that formulas need neither a network nor Node. As a Sphinx extension it would copy
# all of it; a page loads one bundle (TeX in, HTML and CSS out, with assistive MathML beside it) and, on demand, fonts, TeX extensions and
# the accessibility explorer.
_MATHJAX = "sphinx-mathjax-offline"
_BUNDLE = "mathjax/tex-chtml.js"
_OF_MATHJAX = ("tex-chtml.js", "a11y", "input/mml", "input/mml.js", "input/tex/extensions", "output", "sre", "ui")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension with Sphinx."""
    app.add_config_value("tfcourse_cache", ".cache/site/execution", "", [str])
    app.add_config_value("tfcourse_cache_sources", list(SOURCES), "", [list, tuple])
    app.add_config_value("tfcourse_launch", {}, "html", [dict])
    app.add_config_value("tfcourse_downloads", {}, "html", [dict])
    app.add_config_value("tfcourse_dates", {}, "html", [dict])
    app.add_config_value("tfcourse_slides", [], "html", [list, tuple])
    app.add_config_value("tfcourse_report", "", "", [str])
    cache_plugin_lookup()
    app.add_directive("road", CourseMap)
    register(app)
    register_closed_chapters(app)
    app.connect("config-inited", configure)
    app.connect("env-before-read-docs", execute_lessons)
    app.connect("source-read", print_values)
    app.connect("env-updated", pages_to_write)
    # Before napoleon, which runs at 500.
    app.connect("autodoc-process-docstring", prepare_docstring, priority=400)
    # After the theme's own handlers, which run at 500 and 501.
    app.connect("doctree-read", store_word_count)
    app.connect("doctree-resolved", postprocess_document)
    app.connect("html-page-context", dress_page, priority=600)
    app.connect("build-finished", finish_build)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def configure(app: Sphinx, config: Config) -> None:
    """Set the configuration values that derive from the course."""
    root = Path(app.srcdir)
    config.nb_execution_cache_path = str(
        execution_cache_path(root, root / config.tfcourse_cache, config.tfcourse_cache_sources)
    )
    config.mathjax_path = _BUNDLE
    config.templates_path.insert(0, str(_TEMPLATES))
    try:
        LaunchSettings.from_config(config.tfcourse_launch)
        site_address(root)
    except (CourseError, TypeError, ValueError) as error:
        raise ConfigError(str(error)) from error


def prepare_docstring(app: object, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    """Split docstring lines at which napoleon would mistake the beginning of a sentence for a type.

    In Google's style a colon in the first line of either ends a type: "A verdict: its text form is the score" would mean the type "A
    verdict". Types are in our annotations. A line break after the first word keeps the sentence intact.
    """
    # The kinds that napoleon reads in its style of inline attributes.
    is_attribute, prepared = what in ("attribute", "data", "property"), list[str]()
    for line in lines:
        is_first = not prepared if is_attribute else prepared and prepared[-1].strip() in ("Returns:", "Yields:")
        first, _, rest = line.strip().partition(" ")
        margin = line[: len(line) - len(line.lstrip())]
        is_typed = is_first and rest and ":" in (line if is_attribute else rest)
        prepared += [margin + first, margin + rest] if is_typed else [line]
    lines[:] = prepared


def store_word_count(app: Sphinx, document: nodes.document) -> None:
    """Store the word count of a lesson in its page's metadata."""
    page = ChapterPage.from_document(app.env.docname)
    if page is not None and page.kind == "lesson":
        app.env.metadata[app.env.docname][_WORDS] = count_words(document)
        # Its sections link the exercises that practise them.
        app.env.note_dependency(str(Path(app.srcdir) / "chapters" / page.chapter / "exercises.md"))


def postprocess_document(app: Sphinx, document: nodes.document, docname: str) -> None:
    """Link exercises and lessons to each other, and add notes to exercises; on other pages, fold the table of symbols.

    Each heading that an exercise page quotes becomes a link to its section of the lesson.
    """
    page = ChapterPage.from_document(docname)
    if app.builder.format != "html":
        return
    if page is None:
        titles = {path.parent.name[:2]: _lesson_title(app, path) for path in _lesson_paths(app)}
        fold_letters(document, titles, [name[:2] for name in _closed_chapters(app)])
        return
    annotate_page(
        document,
        Path(app.srcdir),
        page.chapter,
        page.kind,
        lambda name: str(app.builder.get_relative_uri(docname, name)),
    )
    if page.kind != "exercises":
        return
    lesson = f"chapters/{page.chapter}/lesson"
    targets = app.env.get_domain("std").data["labels"].values()
    labels = {heading: label for where, label, heading in targets if where == lesson}
    address = app.builder.get_relative_uri(docname, lesson)
    for fault in link_headings(document, labels, lambda label: f"{address}#{label}"):
        _LOGGER.warning("%s", fault, location=docname, type="tfcourse", subtype="heading")


def _closed_chapters(app: Sphinx) -> list[str]:
    return closed_chapters(Path(app.srcdir), app.config.tfcourse_chapters)


def _lesson_paths(app: Sphinx) -> list[Path]:
    return sorted(Path(app.srcdir).glob("chapters/*/lesson.md"))


def _lesson_title(app: Sphinx, path: Path) -> str:
    title = app.env.titles.get(f"chapters/{path.parent.name}/lesson")
    return str(title.astext()) if title is not None else path.parent.name


def dress_page(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: object) -> None:
    """Set a page's header buttons and sidebar, add a chapter's bar, correct its roles, and check its images."""
    page = ChapterPage.from_document(pagename)
    pathto = context["pathto"]
    downloads = download_links(app.config.tfcourse_downloads, page.chapter) if page else []
    settings = LaunchSettings.from_config(app.config.tfcourse_launch)
    launches = launch_links(settings, page.chapter) if page and downloads and settings else []
    buttons = [button for button in context.get("header_buttons", []) if button.get("label") not in _THEME_GROUPS]
    context["header_buttons"] = header_buttons(downloads, launches, lambda name: pathto(name, 1), buttons)
    tree = context["generate_toctree_html"]
    context["generate_toctree_html"] = lambda **options: shorten_sidebar(str(tree(**options)))
    if not context.get("body"):
        return
    # docutils gives entries of a bibliography a role that ARIA has deprecated: screen readers ignore it, and with it the list.
    body = context["body"].replace('role="doc-biblioentry"', 'role="listitem"')
    context["body"] = remove_closed_links(body, _closed_chapters(app))
    for name in element_files(context["body"], _static_folders(app)):
        (app.add_css_file if name.endswith(".css") else app.add_js_file)(name)
    if page:
        deck = page.chapter[:2] if page.chapter[:2] in app.config.tfcourse_slides else ""
        bar = chapter_bar(page, sorted(app.env.found_docs), downloads, pathto, lambda name: pathto(name, 1), deck)
        bar += deadline_line(app.config.tfcourse_dates.get(page.chapter, ""))
        context["body"] = insert_bar(context["body"], bar)
    elif pagename == _LECTURES and app.config.tfcourse_slides:
        link = f'<p><a href="{pathto("slides/index.html", 1)}">All slides of this site</a></p>'
        context["body"] = insert_bar(context["body"], link)
    for fault in image_faults(context["body"]):
        _LOGGER.warning("%s", fault, location=pagename, type="tfcourse", subtype="alt")


def _static_folders(app: Sphinx) -> list[Path]:
    return [Path(app.confdir) / folder for folder in app.config.html_static_path]


def finish_build(app: Sphinx, exception: Exception | None) -> None:
    """Complete the output folder and write the report."""
    if exception is None and app.builder.format == "html":
        copy_mathjax(Path(app.outdir) / "_static")
        _write_entrance(app)
    if app.config.tfcourse_report:
        Path(app.config.tfcourse_report).write_text(json.dumps(_build_report(app), indent=1), encoding="utf-8")


def _write_entrance(app: Sphinx) -> None:
    """Write ``index.html``, which redirects to the welcome page and has a link as a fallback."""
    template = jinja2.Template((_TEMPLATES / "index.html").read_text(encoding="utf-8"), autoescape=True)
    page = template.render(
        first=f"{app.config.root_doc}.html", title=app.config.html_title, language=app.config.language
    )
    (Path(app.outdir) / "index.html").write_text(page, encoding="utf-8")


def _build_report(app: Sphinx) -> dict[str, Any]:
    """Return the build report: pages, the lessons' word counts, and the results of their executions."""
    executed: dict[str, dict[str, Any]] = {
        name: data["exec_data"] for name, data in _notebook_metadata(app).items() if data.get("exec_data")
    }
    return {
        "pages": sorted(app.env.found_docs),
        "runtimes": {name: data["runtime"] for name, data in sorted(executed.items())},
        "words": {
            name: app.env.metadata[name][_WORDS]
            for name in sorted(app.env.found_docs)
            if _WORDS in app.env.metadata[name]
        },
        "failures": {
            name: data["traceback"] or data["error"] for name, data in sorted(executed.items()) if not data["succeeded"]
        },
    }


def _notebook_metadata(app: Sphinx) -> dict[str, dict[str, Any]]:
    metadata: dict[str, dict[str, Any]] = getattr(app.env, "nb_metadata", {})
    return {name: metadata[name] for name in app.env.found_docs if name in metadata}


def copy_mathjax(static: Path) -> None:
    """Copy the parts of MathJax that the pages load into a site's ``_static`` folder.

    Raises:
        ModuleNotFoundError: the package that carries it is not installed.
    """
    spec = importlib.util.find_spec(_MATHJAX)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"{_MATHJAX} is not installed: pip install 'tfcourse[book]'", name=_MATHJAX)
    source, target = Path(spec.origin).parent / "static" / "mathjax", static / Path(_BUNDLE).parent
    for name in _OF_MATHJAX:
        item = source / name
        if item.is_dir():
            shutil.copytree(item, target / name, dirs_exist_ok=True)
        else:
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(item, target / name)


def count_words(document: nodes.document) -> int:
    """Return the number of words in a page's paragraphs and lists, without code, captions, tables and folded text."""
    return sum(
        len(_WORD.findall(_text_without_formulas(paragraph))) for paragraph in document.findall(_is_reading_text)
    )


def _is_reading_text(node: nodes.Node) -> bool:
    if not isinstance(node, nodes.paragraph) or _is_caption(node):
        return False
    parent = node.parent
    while parent is not None:
        if isinstance(parent, _APART) or _APART_CLASSES.intersection(parent.get("classes", ())):
            return False
        parent = parent.parent
    return True


def _is_caption(paragraph: nodes.paragraph) -> bool:
    first = next(iter(paragraph.children), None)
    return isinstance(first, nodes.emphasis) and bool(_CAPTION.match(paragraph.astext()))


def _text_without_formulas(paragraph: nodes.paragraph) -> str:
    """Return a paragraph's text without its formulas."""
    texts = (text for text in paragraph.findall(nodes.Text) if not isinstance(text.parent, nodes.math))
    return "".join(texts)
