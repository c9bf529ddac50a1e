"""The check of ``ibm_model_1``: a table of translations, learned from sentence pairs alone."""

from __future__ import annotations

from autograder.checking import rows
from autograder.checking.draw import Case, Draw
from autograder.checking.exercise import Exercise
from autograder.checks.variants import changed
from tfcourse import alignment


def corpus(draw: Draw) -> Case:
    """A few short pairs, in which words come again in other pairs; every source word occurs."""
    vocabulary_size = int(draw.integers(4, 6))
    pairs = [
        (
            (draw.permutation(vocabulary_size - 1)[: 2 + i % 2] + 1).tolist(),
            (draw.permutation(vocabulary_size)[: 3 - i % 2] + 1).tolist(),
        )
        for i in range(5)
    ]
    pairs.append((list(range(1, vocabulary_size)), pairs[0][1]))
    sizes = {"source_vocab_size": vocabulary_size, "target_vocab_size": vocabulary_size + 2}
    return Case({"pairs": pairs, **sizes, "iterations": 3})


def one_iteration(draw: Draw) -> Case:
    """A single iteration from the uniform table."""
    return corpus(draw).with_arguments(iterations=1)


def no_iteration(draw: Draw) -> Case:
    """No iteration at all."""
    return corpus(draw).with_arguments(iterations=0)


def word_never_occurs(draw: Draw) -> Case:
    """A source word that occurs in no pair, after one iteration."""
    case = one_iteration(draw)
    return case.with_arguments(source_vocab_size=case.arguments["source_vocab_size"] + 1)


def word_with_a_small_share(draw: Draw) -> Case:
    """A source word that occurs once, beside others, and made less than one word; one iteration."""
    case = corpus(draw)
    vocabulary_size = case.arguments["source_vocab_size"]
    return _with_pair(case, [1, vocabulary_size, 2], [1]).with_arguments(
        source_vocab_size=vocabulary_size + 1, iterations=1
    )


def no_target(draw: Draw) -> Case:
    """A pair whose target has no words."""
    return _with_pair(one_iteration(draw), [1, 2], [])


def many_iterations(draw: Draw) -> Case:
    """So many iterations that the table has nearly settled."""
    return corpus(draw).with_arguments(iterations=12)


def double_words(draw: Draw) -> Case:
    """Words that occur twice in one sentence, on either side."""
    case = corpus(draw).with_arguments(iterations=1)
    return case.with_arguments(pairs=[*case.arguments["pairs"], ([1, 1, 2], [2, 3, 3])])


def null_among_words(draw: Draw) -> Case:
    """A source sentence in which 0 stands, which is NULL's number."""
    return _with_pair(corpus(draw), [0, 1], [1])


def null_among_targets(draw: Draw) -> Case:
    """A target sentence in which 0 stands."""
    return _with_pair(corpus(draw), [1], [0, 1])


def unknown_source_word(draw: Draw) -> Case:
    """A source word that is not within its vocabulary."""
    case = corpus(draw)
    return _with_pair(case, [1, case.arguments["source_vocab_size"]], [1])


def unknown_target_word(draw: Draw) -> Case:
    """A target word that is not within its vocabulary."""
    case = corpus(draw)
    return _with_pair(case, [1], [1, case.arguments["target_vocab_size"]])


def _with_pair(case: Case, source: list[int], target: list[int]) -> Case:
    return case.with_arguments(pairs=[(source, target), *case.arguments["pairs"]])


IBM_MODEL_1 = Exercise(
    reference=alignment.ibm_model_1,
    rows=(
        rows.numbers(2.5, one_iteration, gradients=False, title="One iteration shares, adds up and divides rightly."),
        rows.numbers(
            1.5,
            corpus,
            many_iterations,
            name="more iterations",
            gradients=False,
            title="Every iteration goes on from the last.",
        ),
        rows.edge(
            0.75,
            double_words,
            name="double words",
            gradients=False,
            dtypes=(),
            title="A word that occurs twice in a sentence takes part twice.",
        ),
        rows.edge(
            0.75,
            no_iteration,
            word_never_occurs,
            word_with_a_small_share,
            no_target,
            name="start",
            gradients=False,
            dtypes=(),
            title="Before the first iteration the table is uniform, and only the row of a word that never occurs stays so.",
        ),
        rows.errors(
            0.5,
            corpus,
            null_among_words,
            null_among_targets,
            unknown_source_word,
            unknown_target_word,
            changed(corpus, iterations=-1),
            title="A token outside its vocabulary, or 0, and fewer than 0 iterations are a ValueError.",
        ),
    ),
)
