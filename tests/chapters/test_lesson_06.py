"""The lesson of chapter 06 runs, its figures are described, and it states no number that is not true."""

from __future__ import annotations

import json
import re
from collections import Counter
from itertools import pairwise, product
from typing import Any

import pytest
import torch

from tfcourse.data import gpt2_merges, recorded_sentence_vectors, recorded_vocabularies
from tfcourse.lessons.figures.scenes import ch06_tokenization as drawings
from tfcourse.tokenization import (
    best_pair,
    bpe_encode,
    byte_characters,
    merge_pair,
    pre_tokenize,
    train_bpe,
    wordpiece_encode,
)

from .form import LessonForm
from .lesson import Lesson

# What the finished kernel is asked for: a name, and the expression that the lesson's own variables answer.
ASKED = {
    "unknown": "numbers.pieces(numbers.encode('two hundred Brobdingnag'))",
    "once": "[once, unseen, len(text) / sum(counts.values())]",
    "differing": "len(differing) / len(word_counts)",
    "words": "[[in_order[word], longest[word]] for word in words]",
    "lengths": "lengths['in order'] / lengths['longest']",
    "one_by_one": "one_by_one",
    "gpt2": "[len(gpt2), [encode_text(text, gpt2, of_gpt2) for text in recorded]]",
    "boundary": "[[gpt2[i] for i in encode_text(text, gpt2, of_gpt2)] for text in ('https:', 'https://')]",
    "by": "[[''.join(pair) for pair in order] for order in (by_count, by_score)]",
    "losses": "{piece: loss(piece) for piece in ('Ġthe', 'ing', 'Ġclass', 'ance', 'atter')}",
    "brobdingnag": "[bpe_encode('Brobdingnag', merges), 'Brobdingnag' in text]",
    "ours": "[ours[256], theirs[256], ours[512], theirs[512]]",
    "bits": "bits",
    "cuts": "[number, share]",
    "course": "course",
    "moved": "moved",
    "spent": "spent['GPT-2']['Hindi']",
    "near": "near",
    "among": "[[chosen.index(kind[0]), len(kind)] for kind in kinds] + [among]",
    "rhyme": "[rhyme_pieces, [''.join(pair) for pair in rhyme_merges], [' wood', 'chuck'] in [list(pair) for pair in rhyme_merges]]",
    "table": "[table.tolist(), gradient.tolist()]",
    "looked_up": "embedding_lookup(table, torch.tensor([3, 1, 3])).tolist()",
    "without_the": "loss('Ġthe') / (course[-1][0] * n_bytes)",
    "together": "[letter_pairs['q', 'u'] / letters['q'], letter_pairs['b', 'j'] / letters['j']]",
    "by_order": "by_order",
}
# Numbers of the prose that come from the papers it cites and from experiments/indentation.py, or are settings of the code.
GIVEN = "3.5 150,000 100,000 128,000 32,000 4,096 8,192 2,048 3.87 3.49"

LESSON = Lesson("06_tokenization", ASKED, GIVEN)
RECORD = recorded_vocabularies()
PUBLISHED = recorded_sentence_vectors()
CUTS = {cut["text"]: cut for cut in RECORD["cuts"]}
PROGRAM = RECORD["cuts"][-1]
EXAMPLE = Counter(["low", "low", "lower", "newest", "widest"])


class TestForm(LessonForm):
    """The lesson has the form of all lessons."""


# ------------------------------------------------------------------------------------------ its drawings


def test_first_figure_has_the_cut_and_the_ids_of_gpt2() -> None:
    cut = CUTS["Brobdingnag"]["GPT-2"]
    assert tuple(zip(cut["pieces"], cut["ids"], strict=True)) == drawings.WORD


def test_three_ways_to_cut_are_what_the_rules_give() -> None:
    assert dict(drawings.WAYS) == {
        "at spaces": tuple(drawings.SENTENCE.split()),
        "words, punctuation": tuple(re.findall(r"\w+|[^\w\s]", drawings.SENTENCE)),
        "GPT-2's rule": tuple(piece.replace(" ", "␣") for piece in pre_tokenize(drawings.SENTENCE)),
    }


def test_drawn_merge_is_the_third_of_the_example() -> None:
    _, merges = train_bpe(EXAMPLE, 100)
    assert merges[:5] == [("l", "o"), ("lo", "w"), ("e", "s"), ("es", "t"), ("d", "est")]
    assert merges[2] == drawings.PAIR
    drawn = {"".join(symbols): (int(count[0]), list(symbols)) for count, symbols in drawings.BEFORE}
    assert drawn == {word: (n, bpe_encode(word, merges[:2])) for word, n in EXAMPLE.items()}
    pairs = Counter(pair for n, symbols in drawn.values() for pair in list(pairwise(symbols)) * n)
    assert {pair for pair, n in pairs.items() if n > 1} == {("e", "s"), ("s", "t")}
    assert best_pair(["low", "low", "lower"], [1, 1, 1], sorted(set("lower"))) == ("l", "o")


def test_drawn_bytes_and_tokens_are_those_of_utf_8_and_of_gpt2() -> None:
    names = byte_characters()
    for character, codes, shown in drawings.CHARACTERS:
        assert [f"{byte:02X}" for byte in character.encode()] == list(codes)
        assert [names[byte] for byte in character.encode()] == list(shown)
    written = "".join(character for character, _, _ in drawings.CHARACTERS)
    assert [token for _, _, token in drawings.BYTE_TOKENS] == CUTS[written]["GPT-2"]["pieces"]


def test_drawn_line_is_cut_as_mistral_cuts_it() -> None:
    first = PROGRAM["Mistral"]["pieces"][: len(drawings.LINE_TOKENS)]
    assert tuple(first) == drawings.LINE_TOKENS
    assert "".join(first).replace("<0x0A>", "\n").replace("▁", " ") == " " + drawings.LINE


def test_drawn_lookup_is_that_of_the_code_and_its_gradient_counts(values: dict[str, Any]) -> None:
    table, gradient = values["table"]
    assert table == [list(map(float, row)) for row in drawings.TABLE]
    assert values["looked_up"] == [table[row] for row in drawings.IDS]
    assert gradient == [[float(drawings.IDS.count(row))] * 3 for row in range(5)]


# ------------------------------------------------------------------------------------------- its numbers


def test_a_word_that_the_list_does_not_have_is_lost(values: dict[str, Any]) -> None:
    assert values["unknown"] == ["two", "hundred", "<unk>"]


def test_words_have_no_end(values: dict[str, Any]) -> None:
    once, unseen, length = values["once"]  # of a text that differs a little from Python to Python
    assert [once, unseen] == pytest.approx([1 / 3, 1 / 5], abs=0.05)
    assert length**2 == pytest.approx(20, abs=1)


def test_chuck_is_a_symbol_of_its_own_because_it_ends_woodchuck(values: dict[str, Any]) -> None:
    pieces, merges, wood_and_chuck = values["rhyme"]
    assert merges[0].startswith(" "), "the first merges include a space"
    assert merges.index("chuck") < merges.index(" chuck")
    assert wood_and_chuck, "like a German compound"
    assert set(pieces) <= set(merges) | set("".join(pieces)), "there is an end"
    control, _ = train_bpe(Counter(piece.replace("woodchuck", "beaver") for piece in pieces), 100)
    assert {" chuck", "chuck"} & set(control) == {" chuck"}


def test_order_of_merges_matters_for_a_fifth_of_the_pieces_and_not_for_the_length(values: dict[str, Any]) -> None:
    assert values["differing"] == pytest.approx(0.2, abs=0.04)
    assert len(values["words"]) >= 4
    assert all(one != other and "".join(one) == "".join(other) for one, other in values["words"])
    assert values["lengths"] == pytest.approx(1, abs=0.0025)


def test_bytes_have_names_and_characters_wait_for_all_of_them(values: dict[str, Any]) -> None:
    names = byte_characters()
    assert names[:33] == [chr(256 + byte) for byte in range(33)], "all bytes before the space are unprintable too"
    assert names[32] == "Ġ"
    assert values["one_by_one"] == "���"


def test_merges_of_gpt2_give_its_own_ids(values: dict[str, Any]) -> None:
    size, encoded = values["gpt2"]
    assert size == RECORD["sizes"]["GPT-2"] - 1, "all but one special token"
    assert encoded == [cut["GPT-2"]["ids"] for cut in CUTS.values()]


def test_table_of_lowest_has_the_merges_in_their_order() -> None:
    _, merges = train_bpe(EXAMPLE, 14)
    symbols, rows = list("lowest"), []
    while possible := sorted((merges.index(pair), pair) for pair in pairwise(symbols) if pair in merges):
        symbols = merge_pair(symbols, possible[0][1])
        can = ", ".join(f"*{left} {right}* ({rank})" for rank, (left, right) in possible)
        rows.append(f"| {can} | *{' '.join(possible[0][1])}* | *{' '.join(symbols)}* |")
    assert "\n".join(rows) in LESSON.source
    assert symbols == bpe_encode("lowest", merges)


def test_test_word_does_not_occur_in_the_text(values: dict[str, Any]) -> None:
    cut, occurs = values["brobdingnag"]
    assert not occurs
    assert len(cut) > len(CUTS["Brobdingnag"]["GPT-2"]["ids"])


def test_larger_vocabularies_gain_less_and_less(values: dict[str, Any]) -> None:
    recorded = RECORD["prose"]["bytes_per_token"]
    gains = [recorded[str(2 * size)] / recorded[str(size)] for size in (512, 1024, 2048, 4096)]
    assert gains == sorted(gains, reverse=True)
    *bytes_alone, ours, theirs = values["ours"]
    assert bytes_alone == [1, 1]
    assert ours == pytest.approx(recorded["512"], rel=0.03)
    assert theirs < 0.85 * ours, "noticeably more tokens"


def test_indentation_is_what_puts_gpt2_behind() -> None:
    file = LESSON.path.parents[2] / "experiments" / "results" / "indentation.json"
    runs = json.loads(file.read_text("utf-8"))["bytes_per_token"]
    assert runs["own"]["as it is"] > runs["GPT-2"]["as it is"]
    without = [runs[name]["single spaces"] for name in ("GPT-2", "own")]
    assert without == pytest.approx([3.87, 3.49], abs=0.005)


def test_longest_first_gives_up_where_a_cut_exists() -> None:
    pieces = ["un", "una", "##aff", "##able", "##affable", "##ffa", "happy"]
    assert wordpiece_encode("unaffable", pieces) == wordpiece_encode("unhappy", pieces) == ["[UNK]"]
    assert tuple(wordpiece_encode("unaffable", [piece for piece in pieces if piece != "una"])) == drawings.EXISTS
    assert tuple(wordpiece_encode("unaffa", pieces)) == drawings.STUMBLES[:2]


def test_the_courses_wordpiece_cuts_with_a_published_vocabulary_as_its_tokenizer_does() -> None:
    assert PUBLISHED["same_cuts"]["equal"] == PUBLISHED["same_cuts"]["words"]
    cuts = PUBLISHED["cuts"]
    pieces = [piece for cut in cuts.values() for piece in cut]
    assert cuts["unaffable"] == ["una", "##ffa", "##ble"] == wordpiece_encode("unaffable", pieces)
    assert cuts["brobdingnag"] == cuts["Brobdingnag"], "lower case"
    assert cuts["naïveté"] == ["naive", "##te"], "no accents"


def test_best_cut_of_nowhere_is_best_of_all(values: dict[str, Any]) -> None:
    """By trying out every set of borders."""
    bits, costs = values["bits"], {}
    for borders in product(("", " "), repeat=len("nowhere") - 1):
        cut = "".join(map("".join, zip("nowhere", (*borders, ""), strict=True))).split()
        if set(cut) <= set(bits):
            costs[" ".join(cut)] = sum(bits[piece] for piece in cut)
    assert sorted(costs.items(), key=lambda pair: pair[1])[:2] == [("no where", 10), ("now here", 11)]
    number, share = values["cuts"]
    total = sum(2.0**-cost for cost in costs.values())
    assert (number, share) == (len(costs), pytest.approx(2**-10 / total))
    assert 2**-11 / total > 0.9 * (1 - share), "most of the rest"
    assert sum(2.0**-cost for cost in bits.values()) <= 1, "probabilities"


def test_table_of_nowhere_has_the_candidates_and_costs(values: dict[str, Any]) -> None:
    bits, text = values["bits"], "nowhere"
    best, rows = [0], []
    for j in range(1, len(text) + 1):
        ends = {i: best[i] + bits[text[i:j]] for i in range(j) if text[i:j] in bits}
        costs = ", ".join(f"{best[i]} + *{text[i:j]}* {bits[text[i:j]]}" for i in ends)
        best.append(min(ends.values()))
        last = text[min(ends, key=ends.__getitem__) : j]
        rows.append(f"| *{text[:j]}* | {costs} | {best[-1]} | *{last}* |")
    assert "\n".join(rows) in LESSON.source


def test_wordpiece_starts_with_rare_letters_and_bpe_with_common_ones(values: dict[str, Any]) -> None:
    by_count, by_score = values["by"]
    assert {"th", "in"} <= set(by_count[:3])
    assert set(by_score[:2]) == {"bj", "qu"} <= set(by_count[20:])
    assert min(values["together"]) > 0.8, "q and j hardly occur without u and b"


def test_losses_tell_pieces_that_are_missed_from_others(values: dict[str, Any]) -> None:
    losses = values["losses"]
    assert losses["Ġthe"] == max(losses.values())
    assert min(losses.values()) >= 0
    assert max(losses["ance"], losses["atter"]) < 0.01 * losses["Ġthe"], "hardly change"
    assert values["without_the"] == pytest.approx(0.023, abs=0.004), "about 2%"


def test_counting_and_cutting_in_turn_saves_bits_and_changes_little(values: dict[str, Any]) -> None:
    bits, tokens = zip(*values["course"], strict=True)
    assert all(after < before + 1e-4 for before, after in pairwise(bits))
    assert 0 < 1 - bits[1] / bits[0] < 0.01, "the first iteration saves less than one per cent"
    assert abs(bits[3] / bits[1] - 1) < 0.001, "then hardly anything"
    assert max(tokens) / min(tokens) < 1.03, "within a few per cent"
    assert 0.05 < values["moved"] < 0.4


HINDI = RECORD["article"]["Hindi"]


@pytest.mark.parametrize(
    ("text", "model", "part", "pieces"),
    [
        ("strawberry", "GPT-2", slice(None), ["st", "raw", "berry"]),
        (" strawberry", "GPT-2", slice(None), ["Ġstrawberry"]),
        ("1234567890", "GPT-2", slice(None), ["123", "45", "678", "90"]),
        ("1234567890", "Tekken", slice(None), list("1234567890")),
        ("677 + 804 = 1481", "GPT-2", slice(4), ["677", "Ġ+", "Ġ8", "04"]),
        ("The capital of France is ", "GPT-2", slice(-1, None), ["Ġ"]),
        ("    return x", "GPT-2", slice(3), ["Ġ"] * 3),
        (" SolidGoldMagikarp", "GPT-2", slice(None), ["ĠSolidGoldMagikarp"]),
        (HINDI, "Mistral", slice(17, 23), ["ग", "<0xE0>", "<0xA5>", "<0x8C>", "र", "व"]),
    ],
)
def test_cuts_of_real_tokenizers_are_those_of_the_text(text: str, model: str, part: slice, pieces: list[str]) -> None:
    assert CUTS[text][model]["pieces"][part] == pieces


def test_tokens_of_real_tokenizers_are_as_many_as_the_text_says() -> None:
    for model in ("GPT-2", "Mistral"):
        assert not set(CUTS["HELLO WORLD"][model]["ids"]) & set(CUTS["Hello world"][model]["ids"])
    assert [len(CUTS["東京"][model]["ids"]) for model in ("GPT-2", "Mistral", "Tekken")] == [4, 3, 1]
    assert HINDI.split()[3] == "गौरव"
    assert "):Ċ" in PROGRAM["Tekken"]["pieces"]
    assert len(PROGRAM["text"].splitlines()) == 4
    assert 24 <= max(len(set(cut["GPT-2"]["ids"])) for cut in CUTS.values()) < 60, "a few dozen rows"


def test_space_between_two_words_has_no_token_of_its_own() -> None:
    pieces = ["".join(byte_characters()[b] for b in piece.encode()) for piece in pre_tokenize("is Paris")]
    assert [bpe_encode(piece, gpt2_merges()) for piece in pieces] == [["is"], ["ĠParis"]]


def test_a_prompt_that_stops_inside_a_token_has_another_token_there(values: dict[str, Any]) -> None:
    assert values["boundary"] == [["https", ":"], ["https", "://"]]


def test_a_hindi_writer_pays_for_more_tokens_than_characters(values: dict[str, Any]) -> None:
    assert values["spent"] > len(HINDI)


def test_neighbours_are_those_of_the_records() -> None:
    near, published = (
        {word: [other for other, _ in others] for word, others in record["neighbours"].items()}
        for record in (RECORD, PUBLISHED)
    )
    assert near["Monday"][:3] == ["Friday", "Saturday", "Sunday"]
    assert near["red"][0] == "redirect"
    assert set(published["red"][:4]) == {"blue", "yellow", "reddish", "green"}
    assert published["bank"][:4] == ["banks", "banking", "bankers", "banker"]


def test_tokens_that_are_used_alike_are_neighbours(values: dict[str, Any]) -> None:
    near = values["near"]
    assert all(token.isdigit() for token in near["0"][:4])
    assert "Ġa" in near["Ġthe"][:3]
    assert "Ġare" in near["Ġis"][:3]
    *kinds, among = values["among"]
    of_kind = torch.tensor([kind for kind, (_, size) in enumerate(kinds) for _ in range(size)])
    between = torch.tensor(among)[of_kind[:, None] != of_kind]
    assert abs(between.mean()) < 0.15, "near zero"
    in_order, shuffled = values["by_order"]
    assert in_order > 0.4
    assert abs(shuffled) < 0.25 < in_order - abs(shuffled)


def test_tied_row_of_a_token_that_never_occurs_is_pushed_away_from_the_output() -> None:
    generator = torch.Generator().manual_seed(0)
    table, output = torch.randn(5, 3, generator=generator, requires_grad=True), torch.randn(1, 3, generator=generator)
    loss = torch.nn.functional.cross_entropy(output @ table.T, torch.tensor([2]))
    towards = -(torch.autograd.grad(loss, table)[0] @ output[0])  # where a step of gradient descent moves each row
    assert (towards > 0).tolist() == [False, False, True, False, False]
