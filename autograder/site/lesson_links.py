"""Link the headings that an exercise page quotes after “In the lesson: …” to the lesson's sections.

The exercises quote headings as text, because the same text goes into the students' notebooks. So the site looks the headings up, and one
that the lesson does not have is a warning: the section was renamed, or is misspelt.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import groupby

from docutils import nodes

LEAD = "In the lesson:"
_QUOTED = re.compile(r"“([^“”]+)”")


def link_headings(document: nodes.document, labels: Mapping[str, str], link: Callable[[str], str]) -> list[str]:
    """Replace the headings that a page quotes after “In the lesson:” by links.

    Args:
        labels: the labels of the lesson's sections by their headings.
        link: gives the relative address of a label.

    Returns:
        What is wrong, a sentence for each heading that the lesson does not have and each paragraph that quotes none.
    """
    faults = []
    for paragraph in list(document.findall(_quotes_headings)):
        quoted = [_quoted_heading(match) for match in _QUOTED.finditer(paragraph.astext())]
        paragraph[:] = [piece for run in _merge_texts(paragraph) for piece in _link_quotes(run, labels, link)]
        links = {" ".join(node.astext().split()) for node in paragraph.findall(nodes.reference)}
        faults += [f"the lesson has no labelled section “{heading}”" for heading in quoted if heading not in links]
        if not quoted:
            faults.append(f"“{paragraph.astext()}” quotes no heading of the lesson")
    return faults


def _quotes_headings(node: nodes.Node) -> bool:
    if not isinstance(node, nodes.paragraph) or not node.children:
        return False
    return isinstance(node[0], nodes.emphasis) and node[0].astext() == LEAD


def _quoted_heading(quoted: re.Match[str]) -> str:
    return " ".join(quoted[1].split())


def _merge_texts(paragraph: nodes.paragraph) -> Iterator[nodes.Node]:
    """Yield a paragraph's parts, with adjacent texts merged."""
    for is_text, run in groupby(paragraph.children, lambda child: isinstance(child, nodes.Text)):
        if is_text:
            yield nodes.Text("".join(run))
        else:
            yield from run


def _link_quotes(node: nodes.Node, labels: Mapping[str, str], link: Callable[[str], str]) -> Iterator[nodes.Node]:
    """Yield the nodes that replace a node."""
    if not isinstance(node, nodes.Text):
        yield node
        return
    text, end = str(node), 0
    for quoted in _QUOTED.finditer(text):
        if label := labels.get(_quoted_heading(quoted)):
            yield nodes.Text(text[end : quoted.start(1)])
            yield nodes.reference("", quoted[1], internal=True, refuri=link(label))
            end = quoted.end(1)
    yield nodes.Text(text[end:])
