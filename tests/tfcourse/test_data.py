"""The data: what its libraries are asked for, splits that do not leak, a tokenisation that can be undone, and padded batches."""

import datetime
import re
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tfcourse.data import (
    BOS,
    DATE_LOCALES,
    EOS,
    NUMBER_LANGUAGES,
    PAD,
    SPECIAL_TOKENS,
    UNK,
    Pair,
    Vocabulary,
    _plain,
    batches,
    date_pairs,
    date_split,
    detokenize,
    number_pairs,
    number_split,
    number_to_words,
    pad_batch,
    parallel_pairs,
    scenes,
    tokenize,
    wmt_pairs,
)

SPLITS = ("train", "validation", "test")

# Spelled out by hand, from a grammar: no library has been asked.
SPELLED = {
    0: ("zero", "null", "zéro"),
    1: ("one", "eins", "un"),
    21: ("twenty-one", "einundzwanzig", "vingt et un"),
    45: ("forty-five", "fünfundvierzig", "quarante-cinq"),
    80: ("eighty", "achtzig", "quatre-vingts"),
    97: ("ninety-seven", "siebenundneunzig", "quatre-vingt-dix-sept"),
    101: ("one hundred and one", "einhunderteins", "cent un"),
    716: ("seven hundred and sixteen", "siebenhundertsechzehn", "sept cent seize"),
    2300: ("two thousand, three hundred", "zweitausenddreihundert", "deux mille trois cents"),
    54_321: (
        "fifty-four thousand, three hundred and twenty-one",
        "vierundfünfzigtausenddreihunderteinundzwanzig",
        "cinquante-quatre mille trois cent vingt et un",
    ),
}

GERMAN_MONTHS = "Januar Februar März April Mai Juni Juli August September Oktober November Dezember"


# -------------------------------------------------------------------------------------------------------------- numbers


@pytest.mark.parametrize("number", SPELLED)
def test_numbers_are_spelled_as_people_spell_them(number):
    assert tuple(number_to_words(number, language) for language in NUMBER_LANGUAGES) == SPELLED[number]


@pytest.mark.parametrize("languages", [("en", "de"), ("en", "fr"), ("de", "fr")], ids="-".join)
def test_pairs_spell_one_number_in_two_languages(languages):
    source, target = languages
    by_source = {number_to_words(n, source): n for n in range(2000)}
    pairs = number_pairs(source, target, count=300, largest=1999)
    assert len(set(pairs)) == 300
    for pair in pairs:
        assert pair.target == number_to_words(by_source[pair.source], target)


def test_pairs_are_the_same_on_every_machine_and_in_every_run():
    # Written down once: whoever changes how pairs are drawn changes what all recorded runs were trained on.
    assert number_pairs(split="test", count=3) == FIRST_NUMBERS
    assert date_pairs(split="test", count=3, locales=("de", "en_US")) == FIRST_DATES


FIRST_NUMBERS = [
    ("one hundred and twelve thousand and nineteen", "einhundertzwölftausendneunzehn"),
    ("nine thousand, seven hundred and one", "neuntausendsiebenhunderteins"),
    ("fifty-three thousand and seventy-two", "dreiundfünfzigtausendzweiundsiebzig"),
]
FIRST_DATES = [
    ("Sonntag, 26. November 1989", "1989-11-26"),
    ("14.06.2042", "2042-06-14"),
    ("Feb 11, 1989", "1989-02-11"),
]


@pytest.mark.parametrize("languages", [("en", "de"), ("fr", "en")], ids="-".join)
def test_no_number_and_no_text_of_one_split_is_in_another_whatever_the_arguments(languages):
    found = {split: [] for split in SPLITS}
    for seed, largest in [(0, 9_999), (2, 99_999)]:
        for split in SPLITS:
            found[split] += number_pairs(*languages, split=split, count=300, largest=largest, seed=seed)
    for side in (0, 1):
        texts = {split: {pair[side] for pair in found[split]} for split in SPLITS}
        assert not texts["train"] & texts["test"]
        assert not texts["train"] & texts["validation"]
        assert not texts["validation"] & texts["test"]


def test_a_number_has_its_split_whatever_the_language_and_a_tenth_of_them_is_held_out():
    seen = {split: {n for n in range(20_000) if number_split(n) == split} for split in SPLITS}
    for language in NUMBER_LANGUAGES:
        words = {number_to_words(n, language) for n in sorted(seen["test"])[:400]}
        other = "de" if language == "en" else "en"
        assert not words & {pair.source for pair in number_pairs(language, other, count=2000, largest=20_000)}
    assert 0.09 < len(seen["test"]) / 20_000 < 0.115
    assert 0.09 < len(seen["validation"]) / 20_000 < 0.115


@pytest.mark.parametrize("language", NUMBER_LANGUAGES)
def test_a_vocabulary_of_two_thousand_training_pairs_has_every_word_of_the_unseen_numbers(language):
    other = "fr" if language == "de" else "de"
    vocabulary = Vocabulary.from_texts(pair.source for pair in number_pairs(language, other, count=2000))
    for split in ("validation", "test"):
        unseen = number_pairs(language, other, split=split, count=1000)
        assert not [pair.source for pair in unseen if UNK in vocabulary.encode(pair.source)]


@pytest.mark.parametrize(("language", "tokens"), [("en", 49), ("de", 60), ("fr", 53)])
def test_the_data_card_gives_the_sizes_of_vocabularies_and_texts(language, tokens):
    card = (Path(__file__).parents[2] / "docs" / "data.md").read_text(encoding="utf-8")
    assert re.search(rf"\b{tokens}\b", card)
    texts = [pair.source for pair in number_pairs(language, "fr" if language == "de" else "de", count=2000)]
    assert len(Vocabulary.from_texts(texts)) == len(SPECIAL_TOKENS) + tokens
    assert max(len(tokenize(text)) for text in texts) <= 13
    # Below a thousand no number has more words than 999; three digits at a time, the longest are made of it.
    longest = max(range(1000), key=lambda n: len(tokenize(number_to_words(n, language))))
    assert len(tokenize(number_to_words(longest, language))) == len(tokenize(number_to_words(999, language)))
    assert len(tokenize(number_to_words(999_999, language))) == (13 if language == "fr" else 11)
    assert len(tokenize(number_to_words(999_999_999_999, language))) == (27 if language == "fr" else 23)


# ---------------------------------------------------------------------------------------------------------------- dates


def test_dates_of_german_and_american_writing_are_read_back_by_the_standard_library():
    months = GERMAN_MONTHS.split()
    for source, target in date_pairs(count=300, locales=("de",)):
        date = datetime.date.fromisoformat(target)
        dots = f"{date.day:02}.{date.month:02}.{date.year}"
        assert source == dots or source.endswith(f"{date.day}. {months[date.month - 1]} {date.year}")
    for source, target in date_pairs(count=300, locales=("en_US",)):
        form = "%A, %B %d, %Y" if source.count(",") == 2 else "%b %d, %Y"
        try:
            seen = datetime.datetime.strptime(source, form)
        except ValueError:
            seen = datetime.datetime.strptime(source, "%B %d, %Y")
        assert seen.date().isoformat() == target


def test_no_date_and_no_text_of_one_split_is_in_another():
    found = {
        split: date_pairs(split=split, count=1500, seed=0) + date_pairs(split=split, count=1500, seed=1)
        for split in SPLITS
    }
    for side in (0, 1):
        texts = {split: {pair[side] for pair in found[split]} for split in SPLITS}
        assert not texts["train"] & texts["test"]
        assert not texts["train"] & texts["validation"]
        assert not texts["validation"] & texts["test"]
    assert all(date_split(datetime.date.fromisoformat(p.target)) == split for split in SPLITS for p in found[split])


def test_what_is_written_means_one_date_only_in_whatever_locale():
    import babel.dates

    # A whole year, for days and months that change places; of others every thirteenth day, for years with the same last two digits.
    days = [datetime.date(2024, 1, 1) + datetime.timedelta(day) for day in range(366)]
    for year in (1900, 1924, 1999, 2000, 2025, 2099):
        days += [datetime.date(year, 1, 1) + datetime.timedelta(day) for day in range(0, 365, 13)]
    meanings: dict[str, str] = {}
    for date in days:
        for locale in DATE_LOCALES:
            for form in ("medium", "long", "full"):
                # As a pair has it: what is left when marks have gone and spaces are plain.
                text = _plain(babel.dates.format_date(date, format=form, locale=locale))
                assert meanings.setdefault(text, date.isoformat()) == date.isoformat(), (locale, text)


def test_dates_come_from_dozens_of_locales_and_have_plain_spaces():
    assert len(DATE_LOCALES) == len(set(DATE_LOCALES)) == 61
    pairs = date_pairs(count=2000)
    assert len({pair.source for pair in pairs}) == 2000
    assert not [pair for pair in pairs if re.search(r"[\u200e\u200f\u202f\xa0]|  ", pair.source)]
    assert all(re.fullmatch(r"(19|20)\d\d-\d\d-\d\d", pair.target) for pair in pairs)
    assert not [pair for pair in pairs if pair.source == pair.target]


# --------------------------------------------------------------------------------------------------------------- tokens


@given(text=st.text())
def test_any_text_is_put_together_again_from_its_tokens_but_for_the_width_of_gaps(text):
    assert detokenize(tokenize(text)) == " ".join(text.split())


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("twenty-one", "twenty- ##one"),
        ("two thousand, three hundred", "two thousand, three hundred"),
        ("einundzwanzig", "ein ##und ##zwanzig"),
        ("zweitausenddreihundert", "zwei ##tausend ##drei ##hundert"),
        ("quatre-vingt-dix-sept", "quatre- ##vingt- ##dix- ##sept"),
        ("2026-11-03", "2 ##0 ##2 ##6 ##- ##1 ##1 ##- ##0 ##3"),
        ("Dienstag, 3. November 2026", "Dienstag, 3 ##. November 2 ##0 ##2 ##6"),
        ("3 нояб. 2026", "3 нояб. 2 ##0 ##2 ##6"),
        ("नवंबर", "नवंबर"),
        ("hundertwasser", "hundertwasser"),
        ("eins,.", "eins, ##."),
    ],
)
def test_tokens_are_cut_by_the_documented_rule(text, tokens):
    assert tokenize(text) == tokens.split()


# ----------------------------------------------------------------------------------------------------------- vocabulary


def test_special_tokens_have_the_first_four_numbers():
    vocabulary = Vocabulary(["b", "a"])
    assert (PAD, BOS, EOS, UNK) == (0, 1, 2, 3)
    assert vocabulary.tokens == (*SPECIAL_TOKENS, "b", "a")
    assert len(vocabulary) == 6


def test_a_vocabulary_is_ordered_by_frequency_and_then_by_the_alphabet():
    assert Vocabulary.from_texts(["one two", "two three", "four"]).tokens[4:] == ("two", "four", "one", "three")
    assert Vocabulary.from_texts(["one two", "two three"], at_least=2).tokens[4:] == ("two",)


@pytest.mark.parametrize("language", NUMBER_LANGUAGES)
def test_what_is_encoded_decodes_to_itself(language):
    other = "fr" if language == "de" else "de"
    texts = [pair.source for pair in number_pairs(language, other, count=500)]
    vocabulary = Vocabulary.from_texts(texts)
    for text in texts:
        ids = vocabulary.encode(text, bos=True, eos=True)
        assert (ids[0], ids[-1], ids.count(UNK)) == (BOS, EOS, 0)
        assert ids[1:-1] == vocabulary.encode(text)
        assert vocabulary.decode(ids) == text
        assert vocabulary.decode(torch.tensor([*ids, PAD, PAD])) == text
        assert vocabulary.pieces(ids) == tokenize(text)


def test_decoding_stops_at_the_first_end_and_shows_unknown_tokens():
    vocabulary = Vocabulary(["one", "##one"])
    assert vocabulary.encode("one seven") == [4, UNK]
    assert vocabulary.decode([BOS, 4, 5, UNK, EOS, 4, PAD]) == "oneone <unk>"
    with pytest.raises(IndexError, match="the token 6 is not in a vocabulary of 6"):
        vocabulary.decode([6])
    with pytest.raises(IndexError, match="-1"):
        vocabulary.decode([-1])


# -------------------------------------------------------------------------------------------------------------- batches


@given(sequences=st.lists(st.lists(st.integers(1, 9), max_size=6), min_size=1, max_size=5))
def test_padding_stands_behind_the_tokens_and_the_mask_tells_it_from_them(sequences):
    tokens, mask = pad_batch(sequences)
    longest = max(map(len, sequences))
    assert tokens.dtype == torch.int64
    assert mask.dtype == torch.bool
    assert tokens.tolist() == [sequence + [PAD] * (longest - len(sequence)) for sequence in sequences]
    assert mask.tolist() == [[place < len(sequence) for place in range(longest)] for sequence in sequences]


@pytest.fixture(scope="module")
def pairs_and_vocabularies():
    pairs = number_pairs(count=250)
    return pairs, Vocabulary.from_texts(p.source for p in pairs), Vocabulary.from_texts(p.target for p in pairs)


def read(batch, source, target):
    return [Pair(source.decode(s), target.decode(t)) for s, t in zip(batch.source, batch.target, strict=True)]


@pytest.mark.parametrize("bucketed", [False, True])
@pytest.mark.parametrize("seed", [None, 5])
def test_an_epoch_has_every_pair_once_and_source_and_target_stay_together(pairs_and_vocabularies, seed, bucketed):
    pairs, source, target = pairs_and_vocabularies
    epoch = list(batches(pairs, source, target, batch_size=32, seed=seed, bucketed=bucketed))
    seen = [pair for batch in epoch for pair in read(batch, source, target)]
    assert sorted(seen) == sorted(pairs)
    assert (seen == pairs) == (seed is None and not bucketed)
    assert sorted(len(batch.source) for batch in epoch) == [250 % 32] + [32] * (250 // 32)


def test_sources_end_with_eos_and_targets_stand_between_bos_and_eos(pairs_and_vocabularies):
    pairs, source, target = pairs_and_vocabularies
    for batch in batches(pairs, source, target, batch_size=50):
        assert torch.equal(batch.source_mask, batch.source != PAD)
        assert torch.equal(batch.target_mask, batch.target != PAD)
        assert bool((batch.target[:, 0] == BOS).all())
        for tokens, mask in ((batch.source, batch.source_mask), (batch.target, batch.target_mask)):
            assert bool((tokens[torch.arange(len(tokens)), mask.sum(1) - 1] == EOS).all())
        assert not bool((batch.source == BOS).any())


def test_buckets_have_less_padding_and_come_in_an_order_that_the_seed_draws(pairs_and_vocabularies):
    pairs, source, target = pairs_and_vocabularies
    padding = [
        sum(int((~b.source_mask).sum() + (~b.target_mask).sum()) for b in epoch)
        for epoch in (
            batches(pairs, source, target, batch_size=25, seed=0, bucketed=True),
            batches(pairs, source, target, batch_size=25, seed=0),
        )
    ]
    assert padding[0] < padding[1] / 3
    made = [
        [batch.source for batch in batches(pairs, source, target, batch_size=25, seed=seed, bucketed=True)]
        for seed in (None, 0, 0, 1)
    ]
    assert [len(batch[0]) for batch in made[0]] == sorted(len(batch[0]) for batch in made[0])
    assert [len(batch[0]) for batch in made[1]] != sorted(len(batch[0]) for batch in made[1])
    torch.testing.assert_close(made[1], made[2])
    assert [x.tolist() for x in made[1]] != [x.tolist() for x in made[3]]


@pytest.mark.parametrize(
    ("call", "value"),
    [
        (lambda: number_to_words(3, "xx"), "'xx'"),
        (lambda: number_to_words(-3, "en"), "-3"),
        (lambda: number_pairs(count=3000, largest=999), "3000 .* 999"),
        (lambda: number_pairs(split="dev"), "'dev'"),
        (lambda: number_pairs(count=-1), "-1"),
        (lambda: date_pairs(locales=()), "0 "),
        (lambda: date_pairs(first_year=2001, last_year=2000), "2001 to 2000"),
        (lambda: date_pairs(count=-1), "-1"),
        (lambda: date_pairs(split="test", count=300, locales=("de",), first_year=2024, last_year=2024), "300"),
        (lambda: date_pairs(split="dev"), "'dev'"),
        (lambda: wmt_pairs("en", "en"), "en"),
        (lambda: wmt_pairs("de", "fr"), "de"),
        (lambda: wmt_pairs(split="dev"), "'dev'"),
        (lambda: Vocabulary(["a", "b", "a"]), "'a'"),
        (lambda: Vocabulary(["<bos>"]), "'<bos>'"),
        (lambda: pad_batch([]), "one"),
        (lambda: batches([], Vocabulary([]), Vocabulary([]), batch_size=0), "0"),
        (lambda: parallel_pairs(Path(__file__), Path(__file__).with_name("conftest.py")), r"conftest\.py"),
        (lambda: scenes(1, size=12), "16"),
    ],
)
def test_nonsense_is_refused_with_its_value(call, value):
    with pytest.raises(ValueError, match=value):
        call()
