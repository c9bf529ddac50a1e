"""The alignment explorer tells the truth about weights and crossings, in HTML that no word can break."""

import itertools
import json
import re
from html.parser import HTMLParser

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from tfcourse.lessons.explorers.alignments import AlignedPair, AlignmentExplorer, alignment_explorer, count_crossings
from tfcourse.lessons.explorers.heads import head_explorer

SOURCE = ["forty-", "##five"]
TARGET = ["fünf", "##und", "##vierzig"]


def weights_of(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).softmax(-1)


def pair(
    source: list[str] = SOURCE, target: list[str] = TARGET, names: tuple[str, ...] = ("IBM", "net")
) -> AlignedPair:
    shape = (len(target), len(source))
    return AlignedPair(source, target, {name: weights_of(*shape, seed=seed) for seed, name in enumerate(names)})


def shown(*pairs: AlignedPair, caption: str = "Who comes from whom?", start: int | None = None) -> AlignmentExplorer:
    return alignment_explorer(pairs, caption=caption, start=start)


class Page(HTMLParser):
    """The elements of a page in order, the scripts, and the text of each kind of element."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append((self.tags[-1], data))

    def json(self) -> list[dict[str, object]]:
        return [json.loads(text) for tag, text in self.texts if tag == "script"]


# ------------------------------------------------------------------------------------------------------- crossings


def test_links_of_five_and_forty_cross_twice() -> None:
    weights = torch.tensor([[0.1, 0.9], [0.6, 0.4], [0.8, 0.2]])  # fünf → ##five, ##und → forty-, ##vierzig → forty-
    assert count_crossings(weights) == 2


@pytest.mark.parametrize("n", [1, 2, 5])
def test_monotone_alignment_has_no_crossing_and_a_reversed_one_all_there_are(n: int) -> None:
    assert count_crossings(torch.eye(n)) == 0
    assert count_crossings(torch.eye(n).flip(0)) == n * (n - 1) // 2


def test_links_to_the_same_word_do_not_cross_and_rows_of_zeros_have_no_link() -> None:
    assert count_crossings(torch.tensor([[0.2, 0.8], [0.3, 0.7]])) == 0
    assert count_crossings(torch.tensor([[0.0, 1.0], [0.0, 0.0], [0.0, 1.0]])) == 0
    assert count_crossings(torch.zeros(3, 2)) == 0


@given(st.lists(st.integers(0, 5), min_size=1, max_size=7))
def test_crossings_are_those_of_lines_that_intersect(places: list[int]) -> None:
    weights = torch.nn.functional.one_hot(torch.tensor(places), 6).float()
    intersect = sum((a - b) * (s - t) < 0 for (a, s), (b, t) in itertools.combinations(enumerate(places), 2))
    assert count_crossings(weights) == intersect


def test_crossings_of_a_batch_are_refused_with_its_shape() -> None:
    with pytest.raises(ValueError, match=r"\(2, 3, 4\)"):
        count_crossings(torch.ones(2, 3, 4))


# ------------------------------------------------------------------------------------------------------- the page


def test_every_pair_is_a_figure_whose_heads_are_the_aligners() -> None:
    one, two = pair(), pair(["ninety-", "##nine", "<eos>"], ["neun", "##und", "##neunzig", "<eos>"])
    outer, first, second = Page(shown(one, two)._repr_html_()).json()
    assert outer["titles"] == [
        "forty- ##five → fünf ##und ##vierzig",
        "ninety- ##nine <eos> → neun ##und ##neunzig <eos>",
    ]
    assert first["keys"] == SOURCE
    assert first["queries"] == TARGET
    assert first["names"] == ["IBM", "net"]
    for data, given_pair in ((first, one), (second, two)):
        expected = torch.stack(list(given_pair.weights.values()))[None]
        torch.testing.assert_close(torch.tensor(data["weights"]), expected, atol=5.1e-5, rtol=0)


def test_without_a_script_there_is_a_titled_table_for_each_aligner_and_the_number_of_crossings() -> None:
    crossing = AlignedPair(SOURCE, TARGET, {"IBM": torch.eye(2)[[1, 0, 0]], "net": torch.eye(2)[[0, 0, 1]]})
    page = Page(shown(crossing, pair())._repr_html_())
    assert page.tags.count("table") == 4
    assert [text for tag, text in page.texts if tag == "summary"] == ["IBM", "net"] * 2
    assert [text for tag, text in page.texts if tag == "p"][1] == "Pairs of links that cross – IBM: 2; net: none."


def test_first_word_or_the_one_asked_for_is_shown_first() -> None:
    assert shown(pair()).figures[0].start == (0, 0, 0)
    assert [figure.start[2] for figure in shown(pair(), pair(target=["a", "b"]), start=2).figures] == [2, 1]


def test_words_are_counted_from_the_first_one() -> None:
    with pytest.raises(ValueError, match="start=-1"):
        shown(pair(), start=-1)


def test_weights_that_need_gradients_in_half_precision_are_accepted() -> None:
    weights = weights_of(3, 2).half().requires_grad_()
    figure = shown(AlignedPair(SOURCE, TARGET, {"net": weights, "double": weights_of(3, 2).double()})).figures[0]
    torch.testing.assert_close(torch.tensor(figure.weights[0][0]), weights.detach().float(), atol=5e-4, rtol=0)


def test_text_form_says_what_there_is_to_see() -> None:
    told = "of sentences, aligned by IBM, net. Who comes from whom?"
    assert repr(shown(pair())) == f"AlignmentExplorer: 1 pair {told}"
    assert repr(shown(pair(), pair())) == f"AlignmentExplorer: 2 pairs {told}"


@pytest.mark.parametrize(
    ("pairs", "caption", "message"),
    [
        ([], "c", "at least one"),
        ([AlignedPair(SOURCE, TARGET, {})], "c", "at least one"),
        ([pair(), pair(names=("net", "IBM"))], "c", re.escape("('net', 'IBM')")),
        (
            [AlignedPair(SOURCE, TARGET, {"net": torch.ones(2, 3) / 3})],
            "c",
            r"pair 0 has 3 target and 2 source .*\(2, 3\)",
        ),
        ([AlignedPair(SOURCE, TARGET, {"net": 2 * torch.ones(3, 2)})], "c", "between 0 and 1"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_values(pairs: list[AlignedPair], caption: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        alignment_explorer(pairs, caption=caption)


# ----------------------------------------------------------------------------------------- names in the head explorer


def test_heads_are_called_by_their_names_in_every_layer() -> None:
    one = head_explorer(["a"], torch.ones(1, 2, 1, 1), caption="c", names=["left", "right"])
    two = head_explorer(["a"], torch.ones(2, 2, 1, 1), caption="c", names=["left", "right"])
    assert re.findall("<summary>(.*?)</summary>", one._repr_html_()) == ["left", "right"]
    assert re.findall("<summary>(.*?)</summary>", two._repr_html_())[2:] == ["Layer 2, left", "Layer 2, right"]
    assert "names" not in json.loads(head_explorer(["a"], torch.ones(1, 2, 1, 1), caption="c").to_json())


@pytest.mark.parametrize("names", [["left"], ["left", "right", "more"], ["left", " "], []])
def test_names_that_do_not_fit_the_heads_are_refused(names: list[str]) -> None:
    with pytest.raises(ValueError, match="name for each"):
        head_explorer(["a"], torch.ones(1, 2, 1, 1), caption="c", names=names)
