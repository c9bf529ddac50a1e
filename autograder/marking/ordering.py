"""Group identical answers and put similar ones next to each other. A mark is given only to identical answers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from autograder.marking.graded_notebooks import fold_text
from autograder.marking.questions import Answer

_WORD = re.compile(r"\w+")
# So much of a text decides what it resembles. Each word is a column for all answers: one answer of 2 MB of words would fill the memory.
_LONGEST = 20_000


def group_identical(answers: Sequence[Answer]) -> list[list[Answer]]:
    """Group answers with identical text, and order the groups so that neighbours use similar words.

    Answers with attachments stay alone: their images may differ. An answer that waits is not grouped with answers that
    have marks: a mark for it must not replace theirs.

    Answers with attachments stay alone: their pictures may differ. An answer that waits is not grouped with answers that have marks: a
    mark for it must not replace theirs.
    """
    groups: dict[tuple[str, str, bool], list[Answer]] = {}
    for answer in answers:
        alone = answer.student if answer.attachments else ""
        groups.setdefault((fold_text(answer.text), alone, answer.state.waiting), []).append(answer)
    members = list(groups.values())
    return [members[index] for index in order_by_similarity([key[0] for key in groups])]


def order_by_similarity(texts: Sequence[str]) -> list[int]:
    """Return the indices of texts, each followed by the most similar remaining text (cosine of TF-IDF vectors).

    The first text is the longest; ties go to the earlier text, so that the order is the same every time.
    """
    if not texts:
        return []
    vectors = _tf_idf_vectors(texts)
    order = [max(range(len(texts)), key=lambda index: (len(texts[index]), -index))]
    remaining = np.ones(len(texts), dtype=bool)
    remaining[order[0]] = False
    while remaining.any():
        similarity = np.where(remaining, vectors @ vectors[order[-1]], -1.0)
        order.append(int(similarity.argmax()))
        remaining[order[-1]] = False
    return order


def _tf_idf_vectors(texts: Sequence[str]) -> NDArray[np.float64]:
    counts = [Counter(_WORD.findall(text[:_LONGEST])) for text in texts]
    columns = {token: column for column, token in enumerate(sorted(set().union(*counts)))}
    frequencies = np.zeros((len(texts), max(1, len(columns))))
    for row, count in enumerate(counts):
        for token, times in count.items():
            frequencies[row, columns[token]] = 1 + np.log(times)
    documents = (frequencies > 0).sum(axis=0)
    weighted: NDArray[np.float64] = frequencies * (np.log((1 + len(texts)) / (1 + documents)) + 1)
    weighted /= np.maximum(np.linalg.norm(weighted, axis=1, keepdims=True), 1e-12)
    return weighted
