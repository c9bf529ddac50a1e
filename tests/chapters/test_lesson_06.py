"""The lesson of chapter 06 runs, its figures are described, and each number in its prose is checked."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from itertools import pairwise, product
from typing import Any

import pytest
import torch

from tfcourse.data import gpt2_merges, prose, recorded_sentence_vectors, recorded_vocabularies
from tfcourse.lessons.figures.scenes import ch06_tokenization as drawings
from tfcourse.tokenization import (
    best_pair,
    bpe_encode,
    byte_characters,
    merge_pair,
    pre_tokenize,
    train_bpe,
    unigram_segment,
    wordpiece_encode,
)

from .form import LessonForm
from .lesson import Lesson

# What the finished kernel is asked for: a name, and the expression that the lesson's own variables answer.
ASKED = {
    "V": "len(numbers)",
    "unknown": "numbers.pieces(numbers.encode('two hundred Brobdingnag'))",
    "once": "[once, unseen, len(text) / len(pieces)]",
    "differing": "len(differing) / len(word_counts)",
    "words": "[[in_order[word], longest[word]] for word in words]",
    "lengths": "lengths",
    "one_by_one": "one_by_one",
    "gpt2": "[len(gpt2), [encode_text(text, gpt2, of_gpt2) for text in recorded]]",
    "boundary": "[[gpt2[i] for i in encode_text(text, gpt2, of_gpt2)] for text in ('https:', 'https://')]",
    "by": "[by_count, by_score]",
    "losses": "{piece: loss(piece) for piece in ('Ġthe', 'ing', 'Ġclass', 'ance', 'atter')}",
    "brobdingnag": "[bpe_encode('Brobdingnag', merges), 'Brobdingnag' in text]",
    "ours": "ours",
    "theirs": "theirs",
    "shares": "shares",
    "bits": "bits",
    "cuts": "[number, share]",
    "course": "course",
    "moved": "moved",
    "spent": "spent",
    "near": "near",
    "among": "[[chosen.index(kind[0]), len(kind)] for kind in kinds] + [among]",
    "rhyme": "[rhyme_pieces, rhyme_merges]",
    "table": "[table.tolist(), gradient.tolist()]",
    "merged": "list(merged.values())",
    "without_the": "loss('Ġthe') / (course[-1][0] * n_bytes)",
    "together": "[letter_pairs['q', 'u'] / letters['q'], letter_pairs['b', 'j'] / letters['j']]",
    "by_order": "by_order",
}
# Numbers of the prose that come from the papers it cites, or are settings of the code next to them.
GIVEN = {
    "GPT-3.5 and GPT-4 add better",
    "Unicode has more than 150,000 characters,",
    "GPT-4's vocabulary has about 100,000 tokens",
    "and Llama 3's 128,000",
    "from WordLlama, a table of 32,000 tokens that was derived from Llama 2's.",
}

LESSON = Lesson("06_tokenization", ASKED, GIVEN, beside=r"\| vocabulary \|.*?\| what the model reads \|")
SOURCE, PROSE, check = LESSON.source, LESSON.prose, LESSON.check
RECORD = recorded_vocabularies()
PUBLISHED = recorded_sentence_vectors()
RESULTS = LESSON.path.parents[2] / "experiments" / "results"
INDENTATION = json.loads((RESULTS / "indentation.json").read_text("utf-8"))["bytes_per_token"]
CUTS = {cut["text"]: cut for cut in RECORD["cuts"]}


# ---------------------------------------------------------------------------------------------- the page


class TestForm(LessonForm):
    """The lesson has the form of all lessons."""


def test_explorer_shows_the_merges_of_the_rhyme(pages: list[str], values: dict[str, Any]) -> None:
    (page,) = [page for page in pages if page.startswith("<merge-explorer")]
    data = json.loads(re.search(r"<script[^>]*>(.*?)</script>", page)[1])  # type: ignore[index]
    pieces, merges = values["rhyme"]
    assert len(data["words"]) == len(pieces)
    assert len(data["steps"]) == len(merges) + 1
    assert data["steps"][-1][1] < 100, "there is an end: no pair is left before the vocabulary is full"
    assert data["steps"][-1][0] == len(pieces)
    names = ["".join(pair) for pair in merges]
    assert names.index("chuck") < names.index(" chuck")
    assert [" wood", "chuck"] in merges
    assert names[0].startswith(" "), "the first merges include a space"


# ------------------------------------------------------------------------------------------ its drawings


def test_first_figure_has_the_cut_and_the_ids_of_gpt2() -> None:
    cut = CUTS["Brobdingnag"]["GPT-2"]
    assert tuple(zip(cut["pieces"], cut["ids"], strict=True)) == drawings.WORD
    assert RECORD["sizes"]["GPT-2"] == 50_257


def test_three_ways_to_cut_are_what_the_rules_give() -> None:
    ways = dict(drawings.WAYS)
    assert ways["at spaces"] == tuple(drawings.SENTENCE.split())
    assert ways["words, punctuation"] == tuple(re.findall(r"\w+|[^\w\s]", drawings.SENTENCE))
    assert ways["GPT-2's rule"] == tuple(piece.replace(" ", "␣") for piece in pre_tokenize(drawings.SENTENCE))


def test_chuck_is_a_symbol_of_its_own_because_it_ends_woodchuck(values: dict[str, Any]) -> None:
    pieces, merges = values["rhyme"]
    assert "chuck" in ["".join(pair) for pair in merges]
    without = Counter(piece.replace("woodchuck", "beaver") for piece in pieces)  # the control
    names = ["".join(pair) for pair in train_bpe(without, 100)[1]]
    assert " chuck" in names
    assert "chuck" not in names


def test_each_merge_joins_a_pair_that_is_no_more_common_than_the_one_before() -> None:
    words = Counter(pre_tokenize(prose()[:20_000]))
    cuts, vocabulary, often = {word: list(word) for word in words}, sorted(set("".join(words))), []
    for _ in range(40):
        pair = best_pair(list(cuts.values()), list(words.values()), vocabulary)
        assert pair
        often.append(sum(words[word] * list(pairwise(cut)).count(pair) for word, cut in cuts.items()))
        cuts = {word: merge_pair(cut, pair) for word, cut in cuts.items()}
        vocabulary.append("".join(pair))
    assert often == sorted(often, reverse=True)


def test_merge_on_the_page_makes_one_symbol_of_two(values: dict[str, Any]) -> None:
    words = ("low", "lower", "newest", "widest")
    assert [tuple(symbols) for symbols in values["merged"]] == [tuple(merge_pair(list(w), ("l", "o"))) for w in words]


def test_drawn_merge_is_the_third_of_the_example() -> None:
    counts = Counter(["low", "low", "lower", "newest", "widest"])
    _, merges = train_bpe(counts, 100)
    assert merges[:5] == [("l", "o"), ("lo", "w"), ("e", "s"), ("es", "t"), ("d", "est")]
    assert merges[2] == drawings.PAIR
    drawn = {"".join(symbols): (int(count[0]), list(symbols)) for count, symbols in drawings.BEFORE}
    assert drawn == {word: (n, bpe_encode(word, merges[:2])) for word, n in counts.items()}
    pairs = Counter(dict.fromkeys((("e", "s"), ("s", "t")), 0))
    for n, symbols in drawn.values():
        for pair in pairwise(symbols):
            pairs[pair] += n
    assert pairs.most_common(2) == [(("e", "s"), 2), (("s", "t"), 2)]
    assert sorted(pairs.values())[-3] == 1, "nothing else occurs twice"
    assert best_pair(["low", "low", "lower"], [1, 1, 1], sorted(set("lower"))) == ("l", "o")


def test_drawn_bytes_and_tokens_are_those_of_utf_8_and_of_gpt2() -> None:
    names = byte_characters()
    for character, codes, shown in drawings.CHARACTERS:
        assert [f"{byte:02X}" for byte in character.encode()] == list(codes)
        assert [names[byte] for byte in character.encode()] == list(shown)
    written = "".join(character for character, _, _ in drawings.CHARACTERS)
    assert [token for _, _, token in drawings.BYTE_TOKENS] == CUTS[written]["GPT-2"]["pieces"]


# ------------------------------------------------------------------------------------------- its numbers


def test_a_word_that_the_list_does_not_have_is_lost(values: dict[str, Any]) -> None:
    assert values["unknown"] == ["two", "hundred", "<unk>"]
    assert "had a vocabulary of 113 tokens," in PROSE
    assert values["V"] == 113


def test_words_have_no_end(values: dict[str, Any]) -> None:
    once, unseen, length = values["once"]  # of a text that differs a little from Python to Python
    assert once == pytest.approx(1 / 3, abs=0.05)
    assert unseen == pytest.approx(1 / 5, abs=0.05)
    assert length == pytest.approx(4.5, abs=0.1)
    check("Our pieces are about 4.5 characters long on average,", 4.5, form=".1f")
    assert length**2 == pytest.approx(20, abs=1)


def test_order_of_merges_matters_for_a_fifth_of_the_pieces_and_not_for_the_length(values: dict[str, Any]) -> None:
    assert values["differing"] == pytest.approx(0.2, abs=0.04)
    assert len(values["words"]) >= 4
    assert all(one != other and "".join(one) == "".join(other) for one, other in values["words"])
    in_order, longest = values["lengths"]["in order"], values["lengths"]["longest"]
    assert abs(in_order / longest - 1) < 0.0025


def test_bytes_have_names_and_characters_wait_for_all_of_them(values: dict[str, Any]) -> None:
    names = byte_characters()
    assert sum(name == chr(byte) for byte, name in enumerate(names)) == 188
    assert "The 188 bytes that are printable characters" in PROSE
    assert "The other 68," in PROSE
    assert names[32] == chr(256 + 32) == "Ġ"
    assert names[:33] == [chr(256 + byte) for byte in range(33)], "all bytes before the space are unprintable too"
    assert values["one_by_one"] == "���"


def test_merges_of_gpt2_give_its_own_ids(values: dict[str, Any]) -> None:
    size, encoded = values["gpt2"]
    assert size == RECORD["sizes"]["GPT-2"] - 1, "all but one special token"
    assert encoded == [cut["GPT-2"]["ids"] for cut in CUTS.values()]
    check("The 50,000 merges of GPT-2 are recorded", size - 256, form=",")


def test_table_of_lowest_has_the_merges_in_their_order() -> None:
    _, merges = train_bpe(Counter(["low", "low", "lower", "newest", "widest"]), 14)
    assert len(merges) == 4
    symbols, rows = list("lowest"), []
    while possible := sorted((merges.index(pair), pair) for pair in pairwise(symbols) if pair in merges):
        at = list(pairwise(symbols)).index(possible[0][1])
        symbols[at : at + 2] = ["".join(possible[0][1])]
        can = ", ".join(f"*{left} {right}* ({rank})" for rank, (left, right) in possible)
        rows.append(f"| {can} | *{' '.join(possible[0][1])}* | *{' '.join(symbols)}* |")
    assert "\n".join(rows) in SOURCE
    assert symbols == bpe_encode("lowest", merges)


def test_test_word_does_not_occur_in_the_text(values: dict[str, Any]) -> None:
    cut, occurs = values["brobdingnag"]
    assert not occurs
    assert "".join(cut) == "Brobdingnag"
    assert len(cut) > len(CUTS["Brobdingnag"]["GPT-2"]["ids"])


def test_larger_vocabularies_gain_less_and_less(values: dict[str, Any]) -> None:
    recorded = RECORD["prose"]["bytes_per_token"]
    check(
        "From 4,096 to 8,192 the tokens of our text become 8% longer.",
        100 * (recorded["8192"] / recorded["4096"] - 1),
        form=".0f",
    )
    assert values["ours"]["256"] == values["theirs"]["256"] == 1
    assert values["ours"]["512"] == pytest.approx(recorded["512"], rel=0.03)
    assert values["theirs"]["512"] < 0.85 * values["ours"]["512"], "noticeably more tokens"
    check("all 50,257 of its tokens reach only 3.35 bytes per token,", RECORD["gpt2"]["bytes_per_token"])
    check("less than 2,048 tokens made for this text with 3.62.", recorded["2048"])
    spaces = RECORD["gpt2"]["single_spaces"]
    check("18% of its tokens here are single spaces.", 100 * spaces, form=".0f")
    without_runs = {name: run["single spaces"] for name, run in INDENTATION.items()}
    assert INDENTATION["own"]["as it is"] > INDENTATION["GPT-2"]["as it is"]
    assert without_runs["GPT-2"] > without_runs["own"], "without the cause GPT-2 is ahead"
    check("With each run of spaces cut to one, GPT-2 reaches 3.87 and the 2,048 tokens 3.49.", *without_runs.values())
    gains = [recorded[str(2 * size)] / recorded[str(size)] for size in (512, 1024, 2048, 4096)]
    assert gains == sorted(gains, reverse=True)


def test_description_of_the_sizes_has_the_numbers_of_the_plot(values: dict[str, Any]) -> None:
    ours, theirs, recorded = values["ours"], values["theirs"], RECORD["prose"]["bytes_per_token"]
    assert (f"{ours['512']:.1f}", f"{theirs['1256']:.1f}", f"{recorded['8192']:.1f}") == ("2.2", "2.2", "4.5")
    assert "from 1 at 256 to about 2.2 at 512 and 4.5 at 8,192" in SOURCE
    assert "they rise to about 2.2 at 1,256 and 3.4 at" in SOURCE
    assert "BERT-Base 21.4 per cent, GPT-2 31.0, GPT-3 0.4." in SOURCE


def test_share_of_the_embeddings_falls_with_the_model(values: dict[str, Any]) -> None:
    shares = {model: 100 * share for model, share in values["shares"].items()}
    check("21.4% of BERT-Base's parameters and 31.0% of GPT-2's.", shares["BERT-Base"], shares["GPT-2"], form=".1f")
    check("and is 1,403 times as large, and the share drops to 0.35%.", shares["GPT-3"])
    check("and is 1,403 times as large, and the share drops to 0.35%.", 174_604_259_328 / 124_439_808, form=",.0f")
    assert 50_257 * 768 + 1_024 * 768 + 12 * 7_087_872 + 2 * 768 == 124_439_808


def test_longest_first_gives_up_where_a_cut_exists() -> None:
    pieces = ["un", "una", "##aff", "##able", "##affable", "##ffa", "happy"]
    assert wordpiece_encode("unaffable", pieces) == wordpiece_encode("unhappy", pieces) == ["[UNK]"]
    assert tuple(wordpiece_encode("unaffable", [piece for piece in pieces if piece != "una"])) == drawings.EXISTS
    assert tuple(wordpiece_encode("unaffa", pieces)) == drawings.STUMBLES[:2]
    assert "".join(drawings.STUMBLES).replace("##", "") == "unaffable"


def every_cut(text: str, pieces: set[str]) -> list[list[str]]:
    """All cuts, by trying out every set of borders."""
    cuts = []
    for borders in product((False, True), repeat=len(text) - 1):
        cut = [text[0]]
        for character, border in zip(text[1:], borders, strict=True):
            if border:
                cut.append(character)
            else:
                cut[-1] += character
        if set(cut) <= pieces:
            cuts.append(cut)
    return cuts


def test_best_cut_of_nowhere_is_best_of_all(values: dict[str, Any]) -> None:
    bits = values["bits"]
    costs = {" ".join(cut): sum(bits[piece] for piece in cut) for cut in every_cut("nowhere", set(bits))}
    order = sorted(costs, key=costs.__getitem__)
    assert order[:2] == ["no where", "now here"]
    assert (costs["no where"], costs["now here"]) == (10, 11)
    number, share = values["cuts"]
    assert number == len(costs)
    assert share == pytest.approx(2**-10 / sum(2.0**-cost for cost in costs.values()))
    assert f"Of the {number} segmentations, no where has {share:.0%}, and now here most of the rest." in PROSE
    scores = {piece: -cost * math.log(2) for piece, cost in bits.items()}
    assert unigram_segment("nowhere", scores, -20.0)[0] == ["no", "where"]
    assert sum(2.0**-cost for cost in bits.values()) <= 1
    assert 2**-11 / sum(2.0**-cost for cost in costs.values()) > 0.9 * (1 - share)


def test_table_of_nowhere_has_the_candidates_and_costs(values: dict[str, Any]) -> None:
    bits, text = values["bits"], "nowhere"
    best, rows = [0], []
    for j in range(1, len(text) + 1):
        ends = {i: best[i] + bits[text[i:j]] for i in range(j) if text[i:j] in bits}
        costs = ", ".join(f"{best[i]} + *{text[i:j]}* {bits[text[i:j]]}" for i in ends)
        best.append(min(ends.values()))
        last = text[min(ends, key=ends.__getitem__) : j]
        rows.append(f"| *{text[:j]}* | {costs} | {best[-1]} | *{last}* |")
    assert "\n".join(rows) in SOURCE


def test_wordpiece_starts_with_rare_letters_and_bpe_with_common_ones(values: dict[str, Any]) -> None:
    by_count, by_score = (["".join(pair) for pair in order] for order in values["by"])
    assert {"th", "in"} <= set(by_count[:3])
    assert set(by_score[:2]) == {"bj", "qu"}
    assert not {"bj", "qu"} & set(by_count[:20])
    assert min(values["together"]) > 0.8, "q and j hardly occur without u and b"


def test_losses_tell_pieces_that_are_missed_from_others(values: dict[str, Any]) -> None:
    losses = values["losses"]
    assert all(loss >= 0 for loss in losses.values())
    assert losses["Ġthe"] == max(losses.values())
    assert max(losses["ance"], losses["atter"]) < 0.01 * losses["Ġthe"], "hardly change"
    assert values["without_the"] == pytest.approx(0.023, abs=0.004), "about 2%"


def test_counting_and_cutting_in_turn_saves_bits_and_changes_little(values: dict[str, Any]) -> None:
    course = values["course"]
    bits = [one for one, _ in course]
    assert all(after < before + 1e-4 for before, after in pairwise(bits))
    assert 0 < 1 - bits[1] / bits[0] < 0.01, "the first iteration saves less than one per cent"
    assert abs(bits[3] / bits[1] - 1) < 0.001, "then hardly anything"
    assert max(n for _, n in course) / min(n for _, n in course) < 1.03, "within a few per cent"
    assert 0.05 < values["moved"] < 0.4


def test_cuts_of_real_tokenizers_are_those_of_the_text() -> None:
    assert CUTS["strawberry"]["GPT-2"]["pieces"] == ["st", "raw", "berry"]
    assert "st·raw·berry" in PROSE
    assert CUTS[" strawberry"]["GPT-2"]["ids"] == [41236]
    assert "Nothing in the id 41236 says" in PROSE
    assert CUTS["strawberry"]["GPT-2"]["ids"] == [301, 1831, 8396]
    assert "That 8396 is greater than 301 means nothing" in PROSE
    assert not set(CUTS["HELLO WORLD"]["GPT-2"]["ids"]) & set(CUTS["Hello world"]["GPT-2"]["ids"])
    assert not set(CUTS["HELLO WORLD"]["Mistral"]["ids"]) & set(CUTS["Hello world"]["Mistral"]["ids"])
    assert CUTS["1234567890"]["GPT-2"]["pieces"] == ["123", "45", "678", "90"]
    assert "123·45·678·90" in PROSE
    assert CUTS["677 + 804 = 1481"]["GPT-2"]["pieces"][:4] == ["677", "Ġ+", "Ġ8", "04"]
    assert RECORD["gpt2"]["numbers_in_one"] == {"1": 10, "2": 90, "3": 719, "4": 88}
    assert "of the 900 numbers with three digits, 719 are one token and the others are cut." in PROSE
    assert all(not set("0123456789") & set(piece[:-1]) for piece in CUTS["1234567890"]["Tekken"]["pieces"])
    assert CUTS["The capital of France is "]["GPT-2"]["pieces"][-1] == "Ġ"
    assert CUTS["    return x"]["GPT-2"]["pieces"][:3] == ["Ġ"] * 3
    assert CUTS[" SolidGoldMagikarp"]["GPT-2"]["ids"] == [43453]
    assert "number 43453." in PROSE
    assert all(len(CUTS["The detective investigated"][model]["pieces"]) == 3 for model in ("GPT-2", "CLIP", "Tekken"))
    assert [len(CUTS["東京"][model]["ids"]) for model in ("GPT-2", "Mistral", "Tekken")] == [4, 3, 1]
    assert "Four for GPT-2: six bytes," in PROSE
    check("byte-level BPE with 131,072 tokens)", RECORD["sizes"]["Tekken"], form=",")
    hindi = RECORD["article"]["Hindi"]
    assert list(hindi.split()[3]) == ["ग", "\u094c", "र", "व"]
    assert CUTS[hindi]["Mistral"]["pieces"][17:23] == ["ग", "<0xE0>", "<0xA5>", "<0x8C>", "र", "व"]
    assert "\u094c".encode() == bytes([0xE0, 0xA5, 0x8C])


def test_drawn_line_is_cut_as_mistral_cuts_it() -> None:
    program = RECORD["cuts"][-1]
    first = program["Mistral"]["pieces"][: len(drawings.LINE_TOKENS)]
    assert tuple(first) == drawings.LINE_TOKENS
    assert program["text"].startswith(drawings.LINE)
    joined = "".join(first).replace("<0x0A>", "\n").replace("▁", " ")
    assert joined == " " + drawings.LINE


def test_space_between_two_words_has_no_token_of_its_own() -> None:
    cut = [
        bpe_encode("".join(byte_characters()[b] for b in p.encode()), gpt2_merges()) for p in pre_tokenize("is Paris")
    ]
    assert cut == [["is"], ["ĠParis"]]


def test_a_prompt_that_stops_inside_a_token_has_another_token_there(values: dict[str, Any]) -> None:
    assert values["boundary"] == [["https", ":"], ["https", "://"]]


def test_a_program_takes_half_the_tokens_where_runs_of_spaces_have_tokens() -> None:
    program = RECORD["cuts"][-1]
    assert len(program["text"].splitlines()) == 4
    gpt2, tekken = program["GPT-2"]["pieces"], program["Tekken"]["pieces"]
    assert (len(gpt2), gpt2.count("Ġ"), len(tekken)) == (49, 21, 24)
    assert "GPT-2 spends 49 tokens on these four lines, and 21 of them are single spaces" in PROSE
    assert "and needs 24." in PROSE
    assert "):Ċ" in tekken


def test_hindi_pays_ten_times_as_much(values: dict[str, Any]) -> None:
    spent = values["spent"]["GPT-2"]
    assert (spent["English"], spent["Polish"], spent["Hindi"]) == (13, 43, 139)
    assert spent["Hindi"] > len(RECORD["article"]["Hindi"]), "more tokens than characters"
    check(
        "13 tokens in English, 43 in Polish and 139 in Hindi: 10.7 times as many for the same content.",
        spent["Hindi"] / spent["English"],
        form=".1f",
    )
    later = values["spent"]["Tekken"]
    assert (later["English"], later["Hindi"]) == (13, 30)
    check("its sentence costs 30 tokens, 2.3 times the English one.", later["Hindi"] / later["English"], form=".1f")


def test_neighbours_are_those_of_the_record() -> None:
    near = {word: dict(others) for word, others in RECORD["neighbours"].items()}
    assert list(near["Monday"])[:3] == ["Friday", "Saturday", "Sunday"]
    check(
        "Monday has other days as neighbours, Paris has its country at 0.62, and quickly has fast at 0.75.",
        near["Paris"]["France"],
        near["quickly"]["fast"],
    )
    assert next(iter(near["red"])) == "redirect"


def test_neighbours_in_the_table_of_a_published_bert_are_those_of_the_record() -> None:
    near = {word: dict(others[:4]) for word, others in PUBLISHED["neighbours"].items()}
    assert set(near["red"]) == {"blue", "yellow", "reddish", "green"}
    assert list(near["bank"]) == ["banks", "banking", "bankers", "banker"]
    check(
        "uniforms is as near to uniformly (0.44) as evenly is (0.43),",
        near["uniformly"]["uniforms"],
        near["uniformly"]["evenly"],
    )


def test_the_courses_wordpiece_cuts_with_a_published_vocabulary_as_its_tokenizer_does() -> None:
    counted = PUBLISHED["same_cuts"]
    assert counted["equal"] == counted["words"]
    check("cuts each of the 3,738 words of the language reference", counted["words"], form=",d")
    cuts = PUBLISHED["cuts"]
    assert cuts["unaffable"] == ["una", "##ffa", "##ble"]
    pieces = [piece for cut in cuts.values() for piece in cut]
    assert wordpiece_encode("unaffable", pieces) == cuts["unaffable"]
    assert cuts["brobdingnag"] == cuts["Brobdingnag"], "lower case"
    assert cuts["naïveté"] == ["naive", "##te"], "no accents"


def test_tokens_that_are_used_alike_are_neighbours(values: dict[str, Any]) -> None:
    near = values["near"]
    assert all(token.isdigit() for token in near["0"][:4])
    assert "Ġa" in near["Ġthe"][:3]
    assert "Ġare" in near["Ġis"][:3]
    *kinds, among = values["among"]
    of_kind = [kind for kind, (_, size) in enumerate(kinds) for _ in range(size)]
    inside, between = [], []
    for row, column in product(range(len(of_kind)), repeat=2):
        if row != column:
            (inside if of_kind[row] == of_kind[column] else between).append(among[row][column])
    assert sum(inside) / len(inside) > 0.4
    assert abs(sum(between) / len(between)) < 0.15, "near zero"


def test_order_of_the_tokens_makes_the_kinds(values: dict[str, Any]) -> None:
    in_order, shuffled = values["by_order"]
    assert in_order > 0.4
    assert abs(shuffled) < 0.25 < in_order - abs(shuffled)


def test_tied_row_of_a_token_that_never_occurs_is_pushed_away_from_the_output() -> None:
    generator = torch.Generator().manual_seed(0)
    table, output = torch.randn(5, 3, generator=generator, requires_grad=True), torch.randn(1, 3, generator=generator)
    torch.nn.functional.cross_entropy(output @ table.T, torch.tensor([2])).backward()
    assert table.grad is not None
    towards = -(table.grad @ output[0])  # where a step of gradient descent moves each row
    assert towards[2] > 0
    assert (towards[[0, 1, 3, 4]] < 0).all()


def test_drawn_lookup_is_that_of_the_code_and_its_gradient_counts(values: dict[str, Any]) -> None:
    table, gradient = values["table"]
    assert table == [list(map(float, row)) for row in drawings.TABLE]
    assert f"ids = torch.tensor([{', '.join(map(str, drawings.IDS))}])" in SOURCE
    assert gradient == [[float(drawings.IDS.count(row))] * 3 for row in range(5)]


def test_a_gradient_is_sent_to_few_rows_of_the_table() -> None:
    check(
        "Through the lookup a sentence reaches a few dozen of the 50,257 rows of GPT-2;",
        RECORD["sizes"]["GPT-2"],
        form=",",
    )
    longest = max(len(set(cut["GPT-2"]["ids"])) for cut in CUTS.values())
    assert 24 <= longest < 60
