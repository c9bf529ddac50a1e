"""Data sets: number names, dates and parallel text to translate, prose to tokenize, and recorded results.

Numbers and dates are generated offline by num2words and Babel. Both are imported only
when they are needed. The split of a number or date depends only on that number or date,
so training data of one call never appears in the test data of another.

Shapes: B batch, T target length, S source length. Boolean masks are True at real
tokens.
"""

import datetime
import hashlib
import json
import random
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from importlib.resources import files
from itertools import groupby
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

__all__ = [
    "BOS",
    "DATE_LOCALES",
    "EOS",
    "NUMBER_LANGUAGES",
    "PAD",
    "SPECIAL_TOKENS",
    "UNK",
    "Batch",
    "Pair",
    "Scenes",
    "Split",
    "Vocabulary",
    "batches",
    "date_pairs",
    "date_split",
    "detokenize",
    "gpt2_merges",
    "number_pairs",
    "number_split",
    "number_to_words",
    "pad_batch",
    "parallel_pairs",
    "prose",
    "recorded_bert",
    "recorded_gpt",
    "recorded_grouped_queries",
    "recorded_positions",
    "recorded_sampling",
    "recorded_sentence_vectors",
    "recorded_translation",
    "recorded_vision",
    "recorded_vocabularies",
    "recorded_writing",
    "scenes",
    "tokenize",
    "wmt_pairs",
]

PAD = 0
"""Fills up the shorter sequences of a batch; never a real token."""
BOS = 1
"""Begins a target, as the decoder's first input."""
EOS = 2
"""Ends a sequence."""
UNK = 3
"""Stands for every token that a vocabulary does not have."""
SPECIAL_TOKENS = ("<pad>", "<bos>", "<eos>", "<unk>")
"""What the four are called where a person reads them, at their places."""

NUMBER_LANGUAGES = ("en", "de", "fr")
"""English, German and French, the languages in which numbers are spelled out."""

_LOCALES = """
ar az be bg bn ca cs cy da de el en_AU en_CA en_GB en_US es et eu fa fi fil fr ga gl he hi hr hu hy id is it ja ka kk ko
lv mk mn ms nb nl pl pt ro ru sk sl sq sr sv sw ta th tr uk ur uz vi zh zu
"""
DATE_LOCALES = tuple(_LOCALES.split())
"""Locales in which dates are written. None of their ways of writing one date is another's way of writing a different one."""

Split = Literal["train", "validation", "test"]

_DATE_FORMATS = ("medium", "long", "full")
# Of the 256 values of a digest's first byte, so many belong to the test and as many to the validation: a tenth each.
_HELD_OUT = 26
_WORDS_BELOW = 100
_JOINED = "##"
_GERMAN_WORDS = """
null ein eins eine zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn
achtzehn neunzehn zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig hundert tausend und
"""
# Longest first: "dreizehn" is one piece, and not "drei" with a rest that is none.
_GERMAN_PIECES = sorted(_GERMAN_WORDS.split(), key=len, reverse=True)


class Pair(NamedTuple):
    """A text and its translation."""

    source: str
    """What is to be translated."""
    target: str
    """Its translation."""


class Batch(NamedTuple):
    """Sequences of tokens, padded to the longest of them."""

    source: Tensor
    """Source tokens, each sequence ended by EOS, (B, S) int64."""
    source_mask: Tensor
    """True where the source has a real token, (B, S) bool."""
    target: Tensor
    """Target tokens between BOS and EOS, (B, T + 1) int64. All but the last go in, all but the first are to come out."""
    target_mask: Tensor
    """True where the target has a real token, (B, T + 1) bool."""


# ------------------------------------------------------------------------------------------------------------- the texts


def number_to_words(number: int, language: str) -> str:
    """Spell out a number.

    Args:
        number: An integer, 0 or larger.
        language: One of `NUMBER_LANGUAGES`.

    Returns:
        For example "forty-five", "fünfundvierzig" or "quarante-cinq".

    Raises:
        ValueError: If the language is unknown or the number is negative.
        ImportError: If num2words is not installed.
    """
    if language not in NUMBER_LANGUAGES:
        raise ValueError(f"expected a language out of {', '.join(NUMBER_LANGUAGES)}, got {language!r}")
    if number < 0:
        raise ValueError(f"expected a number of 0 or more, got {number}")
    words: str = _num2words()(number, lang=language)
    return words


def number_pairs(
    source: str = "en",
    target: str = "de",
    *,
    split: Split = "train",
    count: int = 5000,
    largest: int = 999_999,
    seed: int = 0,
) -> list[Pair]:
    """Spell out different numbers in two languages.

    The number of digits is drawn first, uniformly, and then the digits, so that both
    short and long numbers occur. When all short numbers are used, the rest are longer.
    A number belongs to the same split in every call. All numbers below 100 belong to
    the training split and are always among its pairs, because the names of larger
    numbers are composed of theirs.

    Args:
        source: Language of the sources, one of `NUMBER_LANGUAGES`.
        target: Language of the targets.
        split: "train", "validation" or "test": about 80 %, 10 % and 10 % of all
            numbers.
        count: Number of pairs.
        largest: Largest number that may occur.
        seed: Seed for the choice of numbers and their order.

    Returns:
        The pairs, all for different numbers.

    Raises:
        ValueError: If a language or split is unknown, `count` is negative, or the split
            has fewer than `count` numbers.
        ImportError: If num2words is not installed.
    """
    if count < 0:
        raise ValueError(f"expected a count of 0 or more, got {count}")
    rng = random.Random(f"numbers {_check_split(split)} {seed}")
    words = [n for n in range(min(_WORDS_BELOW, largest + 1)) if number_split(n) == split]
    chosen = dict.fromkeys(words if len(words) <= count else rng.sample(words, count))
    for _ in range(100 * count + 1000):
        if len(chosen) == count:
            break
        digits = rng.randint(1, len(str(largest)))
        number = rng.randrange(0 if digits == 1 else 10 ** (digits - 1), 10**digits)
        if number <= largest and number_split(number) == split:
            chosen[number] = None
    else:
        raise ValueError(f"could not find {count} numbers up to {largest} in the split {split!r}, only {len(chosen)}")
    numbers = list(chosen)
    rng.shuffle(numbers)
    return [Pair(number_to_words(n, source), number_to_words(n, target)) for n in numbers]


def number_split(number: int) -> Split:
    """Return the split of a number: the same in every call and in every language."""
    return "train" if number < _WORDS_BELOW else _split_of(f"number {number}")


def date_pairs(
    *,
    split: Split = "train",
    count: int = 5000,
    locales: Sequence[str] = DATE_LOCALES,
    first_year: int = 1900,
    last_year: int = 2099,
    seed: int = 0,
) -> list[Pair]:
    """Write dates in local formats and in ISO 8601: "Dienstag, 3. November 2026" and "2026-11-03".

    The medium, long and full formats of a locale occur equally often. A date belongs to
    the same split in every call and every language. All kinds of spaces become plain
    spaces, and directional marks are removed.

    Args:
        split: "train", "validation" or "test": about 80 %, 10 % and 10 % of all dates.
        count: Number of pairs.
        locales: Locales for the dates, for example "de" or "pt_BR".
        first_year: The earliest year.
        last_year: The latest year.
        seed: Seed for the dates, locales, formats and their order.

    Returns:
        The pairs; no source occurs twice. If the locales write two dates in the same
        way, the pair that was drawn first is kept.

    Raises:
        ValueError: If the split is unknown, there are no locales or no years, `count`
            is negative, or the split has fewer than `count` different pairs.
        babel.UnknownLocaleError: If Babel does not know a locale.
        ImportError: If Babel is not installed.
    """
    if not locales or first_year > last_year or count < 0:
        raise ValueError(
            f"expected locales, years and a count, got {len(locales)} locales, {first_year} to {last_year}, count={count}"
        )
    write = _format_date()
    rng = random.Random(f"dates {_check_split(split)} {seed}")
    first, last = datetime.date(first_year, 1, 1), datetime.date(last_year, 12, 31)
    dates: dict[str, str] = {}
    for _ in range(100 * count + 1000):
        if len(dates) == count:
            break
        date = first + datetime.timedelta(rng.randint(0, (last - first).days))
        locale, form = rng.choice(locales), rng.choice(_DATE_FORMATS)
        if date_split(date) == split:
            dates.setdefault(_plain(write(date, format=form, locale=locale)), date.isoformat())
    else:
        raise ValueError(
            f"could not find {count} dates from {first_year} to {last_year} in the split {split!r}, only {len(dates)}"
        )
    return [Pair(source, target) for source, target in dates.items()]


def date_split(date: datetime.date) -> Split:
    """Return the split of a date: the same in every call and in every language."""
    return _split_of(f"date {date.isoformat()}")


def parallel_pairs(source: Path, target: Path, *, count: int | None = None) -> list[Pair]:
    """Read parallel text from two files: line n of one is the translation of line n of the other, as WMT publishes it.

    Args:
        source: File with the sources, UTF-8.
        target: File with the targets.
        count: Maximum number of pairs; None means all of them. The files are not read
            beyond this point, so later mismatches are not detected.

    Returns:
        The different pairs without a blank side, in the order of the files.

    Raises:
        ValueError: If the files have different numbers of lines.
        OSError: If a file cannot be read.
    """
    with source.open(encoding="utf-8") as sources, target.open(encoding="utf-8") as targets:
        try:
            return _distinct(zip(sources, targets, strict=True), count)
        except ValueError as error:
            if isinstance(error, UnicodeDecodeError):
                raise
            raise ValueError(f"{source} and {target} do not have equally many lines") from error


def wmt_pairs(
    source: str = "en",
    target: str = "de",
    *,
    split: Split = "train",
    count: int | None = 10_000,
    dataset: str | Path = "wmt/wmt14",
) -> list[Pair]:
    """Load sentences and their translations from a shared task of the Conference on Machine Translation (WMT).

    This needs the package `datasets` and, the first time, a network connection. At most
    `count` pairs are downloaded.

    Args:
        source: Language of the sources. One of the two is "en".
        target: Language of the targets.
        split: "train", "validation" or "test", as defined by the task.
        count: Maximum number of pairs, from the beginning of the split; None means all
            of them.
        dataset: Name of the task's data set, or a folder of the same layout on this
            machine.

    Returns:
        The different pairs without a blank side.

    Raises:
        ValueError: If the languages are not English and one other language, or the
            split is unknown.
        ImportError: If `datasets` is not installed.
    """
    if source == target or "en" not in (source, target):
        raise ValueError(f"expected English and another language, got {source!r} and {target!r}")
    other, split = (target if source == "en" else source), _check_split(split)
    try:
        from datasets import load_dataset
    except ImportError as error:
        raise _missing("datasets", "sentences of WMT", extra="corpora") from error
    rows = load_dataset(str(dataset), f"{other}-en", split=split, streaming=True)
    return _distinct(((row["translation"][source], row["translation"][target]) for row in rows), count)


def prose() -> str:
    """Return English prose that comes with Python: the language reference, as shown by `help()`.

    It has about 465,000 characters in paragraphs, tables and examples, with more than a
    hundred different characters. The text changes slightly with every version of
    Python, so compute statistics instead of relying on fixed numbers.

    Returns:
        All topics of `pydoc_data.topics` in alphabetical order of their names, with an
        empty line between two.
    """
    from pydoc_data.topics import topics

    return "\n\n".join(topics[name] for name in sorted(topics))


def recorded_bert() -> dict[str, Any]:
    """Return recorded results of a small BERT: predictions for masked tokens, and the effect of pre-training.

    The entry "generated" contains the command that creates the record; docs/data.md
    describes the other entries.

    Returns:
        The record, plain dictionaries and lists.
    """
    return _recorded("bert")


def recorded_gpt() -> dict[str, Any]:
    """Return recorded results of small GPTs: a comparison with bigram counts, six model sizes at one budget, and fine-tuning.

    The entry "generated" contains the command that creates the record; docs/data.md
    describes the other entries.

    Returns:
        The record, plain dictionaries and lists.
    """
    return _recorded("gpt")


def recorded_t5() -> dict[str, Any]:
    """Return recorded results of small T5s: three tasks, from scratch and after span corruption, with learning curves.

    The entry "generated" contains the command that creates the record; docs/data.md
    describes the other entries.

    Returns:
        The record, plain dictionaries and lists.
    """
    return _recorded("t5")


def recorded_grouped_queries() -> dict[str, Any]:
    """Return recorded results of small Llamas: losses with shared keys, and the effect of pooling heads.

    The entry "command" contains the command that creates the record; docs/data.md
    describes the other entries.

    Returns:
        The record, plain dictionaries and lists.
    """
    return _recorded("grouped_queries")


def recorded_positions() -> dict[str, Any]:
    """Return recorded results of six position encodings beyond the training length, and of context extension for RoPE.

    The entry "generated" contains the command that creates the record; docs/data.md
    describes the other entries.

    Returns:
        The record, plain dictionaries and lists.
    """
    return _recorded("positions")


def recorded_translation() -> dict[str, Any]:
    """Return recorded results of six translation models on one task: learning curves, exact matches and attention maps.

    The entry "generated" contains the command that creates the record; docs/data.md
    describes the other entries.

    Returns:
        The record, plain dictionaries and lists.
    """
    return _recorded("translation")


def recorded_sampling() -> dict[str, Any]:
    """Return recorded samples of small GPTs with filters and temperatures, and repetitive greedy outputs.

    The entry "generated" contains the command that creates the record; docs/data.md
    describes the other entries.

    Returns:
        The record, plain dictionaries and lists.
    """
    return _recorded("sampling")


def recorded_sentence_vectors() -> dict[str, Any]:
    """Return recorded results of a published BERT: two senses of words, sentence vectors, neighbours, tokenizations and attention maps.

    The entry "generated" contains the command that creates the record, "source" the
    model and its licence; docs/data.md describes the other entries.

    Returns:
        The record, plain dictionaries and lists.
    """
    return _recorded("sentence_vectors")


def recorded_vision() -> dict[str, Any]:
    """Return recorded results of Transformers and earlier models on digits, scenes and tables.

    The entry "generated" contains the command that creates the record; docs/data.md
    describes the other entries.

    Returns:
        The record, plain dictionaries and lists.
    """
    return _recorded("vision")


def recorded_vocabularies() -> dict[str, Any]:
    """Return texts tokenized by GPT-2, CLIP and two Mistral tokenizers, and nearest neighbours in a published embedding matrix.

    The entry "generated" names the command that makes the record, "sources" the
    packages from which it was created, with their licences; docs/data.md describes the
    other entries.

    Returns:
        The record, plain dictionaries and lists.
    """
    return _recorded("vocabularies")


def recorded_writing() -> dict[str, Any]:
    """Return what a small GPT writes after one prompt under several decoding methods, with counts over more prompts.

    The entry "generated" contains the command that creates the record; docs/data.md
    describes the other entries.

    Returns:
        The record, plain dictionaries and lists.
    """
    return _recorded("writing")


def gpt2_merges() -> list[tuple[str, str]]:
    """Return GPT-2's 50,000 merges, the earliest learnt first, written in byte characters.

    The vocabulary of GPT-2 is the 256 byte characters, sorted, then the results of
    these merges, then the end-of-text token.

    Returns:
        Pairs of symbols, left and right.
    """
    file = files("tfcourse") / "recorded" / "gpt2_merges.txt"
    lines = file.read_text(encoding="utf-8").rstrip("\n").split("\n")
    return [(left, right) for left, right in (line.split(" ") for line in lines)]


class Scenes(NamedTuple):
    """Images with boxes in them."""

    images: Tensor
    """Pictures, (count, 1, size, size), numbers from 0 to 1."""
    labels: list[Tensor]
    """For each picture the kinds of its boxes, 0 filled, 1 hollow, 2 crossed."""
    boxes: list[Tensor]
    """Its boxes, (O, 4), each as centre x, centre y, width and height, in shares of the picture."""


def scenes(count: int, size: int = 24, seed: int = 0) -> Scenes:
    """Draw noisy images of one to three non-overlapping boxes, each filled, hollow or crossed.

    Args:
        count: Number of images.
        size: Side of an image, in pixels, at least 16.
        seed: The same seed gives the same images.

    Returns:
        The images and their boxes, in the order in which they were drawn.

    Raises:
        ValueError: If `size` is too small for three boxes.
    """
    if size < 16:
        raise ValueError(f"a picture of {size} pixels is too small for three boxes: 16 at least")
    draw = random.Random(seed)
    images = 0.1 * torch.rand(count, 1, size, size, generator=torch.Generator().manual_seed(seed))
    labels, boxes = [], []
    for image in images[:, 0]:
        kinds: list[int] = []
        placed: list[tuple[int, int, int, int]] = []
        number = draw.randint(1, 3)
        while len(placed) < number:
            width, height = draw.randint(5, size // 3), draw.randint(5, size // 3)
            left, top = draw.randint(0, size - width), draw.randint(0, size - height)
            if any(left <= x + w and x <= left + width and top <= y + h and y <= top + height for x, y, w, h in placed):
                continue
            kinds.append(draw.randrange(3))
            placed.append((left, top, width, height))
            _draw_box(image[top : top + height, left : left + width], kinds[-1])
        corners = torch.tensor(placed, dtype=torch.float32)  # (O, 4): left, top, width, height
        boxes.append(torch.cat([corners[:, :2] + corners[:, 2:] / 2, corners[:, 2:]], dim=1) / size)
        labels.append(torch.tensor(kinds))
    return Scenes(images, labels, boxes)


def _draw_box(region: Tensor, kind: int) -> None:
    """Draw a box of a kind on a piece of an image: 0 filled, 1 hollow, 2 crossed."""
    height, width = region.shape
    region[[0, -1]] = 1.0
    region[:, [0, -1]] = 1.0
    if kind == 0:
        region.fill_(1.0)
    elif kind == 2:
        region[height // 2] = 1.0
        region[:, width // 2] = 1.0


def _recorded(name: str) -> dict[str, Any]:
    file = files("tfcourse") / "recorded" / f"{name}.json"
    record: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return record


def _distinct(texts: Iterable[tuple[str, str]], count: int | None) -> list[Pair]:
    pairs: dict[Pair, None] = {}
    for source, target in texts:
        pair = Pair(_plain(source), _plain(target))
        if pair.source and pair.target:
            pairs[pair] = None
        if count is not None and len(pairs) >= count:
            break
    return list(pairs)


def _plain(text: str) -> str:
    """Compose characters, replace white space by single spaces, and remove directional marks."""
    cleaned = "".join(c for c in unicodedata.normalize("NFC", text) if unicodedata.category(c) != "Cf")
    return " ".join(cleaned.split())


def _check_split(split: Split) -> Split:
    if split not in ("train", "validation", "test"):
        raise ValueError(f"expected the split 'train', 'validation' or 'test', got {split!r}")
    return split


def _split_of(key: str) -> Split:
    byte = hashlib.sha256(key.encode()).digest()[0]
    if byte < _HELD_OUT:
        return "test"
    return "validation" if byte < 2 * _HELD_OUT else "train"


def _num2words() -> Callable[..., Any]:
    try:
        from num2words import num2words
    except ImportError as error:
        raise _missing("num2words", "numbers in words") from error
    convert: Callable[..., Any] = num2words
    return convert


def _format_date() -> Callable[..., str]:
    try:
        from babel.dates import format_date
    except ImportError as error:
        raise _missing("babel", "dates of many places") from error
    return format_date


def _missing(package: str, purpose: str, extra: str = "data") -> ImportError:
    return ImportError(
        f"{purpose} need the package {package}: pip install {package}, or pip install 'tfcourse[{extra}]'"
    )


# ------------------------------------------------------------------------------------------------------------ the tokens


def tokenize(text: str) -> list[str]:
    """Split a text into tokens, by a rule that `detokenize` can undo.

    Words are separated by spaces. A word is split into pieces: a run of letters with a
    hyphen, comma or full stop after it, a single digit, or any other single character.
    A run of letters that is a German number is split into its parts. All pieces of a
    word except the first begin with "##": "einundzwanzig" becomes
    `ein ##und ##zwanzig`, units before tens.

    Args:
        text: Any text.

    Returns:
        The tokens; "twenty-one" gives `twenty- ##one`.
    """
    tokens = []
    for word in text.split():
        first, *others = _pieces(word)
        tokens += [first, *(_JOINED + piece for piece in others)]
    return tokens


def detokenize(tokens: Iterable[str]) -> str:
    """Join tokens into text: the inverse of `tokenize`, up to white space.

    Args:
        tokens: Tokens; a token that continues a word begins with "##".

    Returns:
        The text.
    """
    return " ".join(tokens).replace(f" {_JOINED}", "")


@lru_cache(maxsize=2**16)  # every epoch takes the same words apart
def _pieces(word: str) -> tuple[str, ...]:
    pieces: list[str] = []
    for lettered, run in groupby(word, key=lambda c: unicodedata.category(c)[0] in "LM"):
        characters = list(run)
        if lettered:
            pieces += _german_number("".join(characters))
            continue
        if pieces and characters[0] in "-,." and unicodedata.category(pieces[-1][-1])[0] in "LM":
            pieces[-1] += characters.pop(0)
        pieces += characters
    return tuple(pieces)


def _german_number(letters: str) -> list[str]:
    """Split a German number name into its parts; any other text is returned as a single part."""
    pieces, rest = [], letters
    while rest:
        piece = next((piece for piece in _GERMAN_PIECES if rest.startswith(piece)), None)
        if piece is None:
            return [letters]
        pieces.append(piece)
        rest = rest[len(piece) :]
    return pieces


class Vocabulary:
    """The tokens of a language and their ids: first `PAD`, `BOS`, `EOS` and `UNK`.

    Args:
        tokens: The tokens in the order of their ids, without the special tokens.

    Raises:
        ValueError: If a token occurs twice, or is one of `SPECIAL_TOKENS`.
    """

    def __init__(self, tokens: Iterable[str]) -> None:
        self.tokens: tuple[str, ...] = (*SPECIAL_TOKENS, *tokens)
        """All tokens; a token's place is its number."""
        self._ids = {token: number for number, token in enumerate(self.tokens)}
        if len(self._ids) != len(self.tokens):
            twice = [token for token, times in Counter(self.tokens).items() if times > 1]
            raise ValueError(f"tokens that occur twice: {', '.join(map(repr, twice))}")

    @classmethod
    def from_texts(cls, texts: Iterable[str], *, at_least: int = 1) -> "Vocabulary":
        """Build a vocabulary from texts, sorted by frequency, then alphabetically.

        Args:
            texts: The training texts, and no others.
            at_least: How often a token must occur in them to get an id.

        Returns:
            The vocabulary.
        """
        counts = Counter(token for text in texts for token in tokenize(text))
        frequent = sorted((-times, token) for token, times in counts.items() if times >= at_least)
        return cls(token for _, token in frequent)

    def __len__(self) -> int:
        """Return the number of tokens V, including the special tokens."""
        return len(self.tokens)

    def encode(self, text: str, *, bos: bool = False, eos: bool = False) -> list[int]:
        """Convert a text to token ids; an unknown token becomes `UNK`.

        Args:
            text: The text.
            bos: Whether to prepend BOS.
            eos: Whether to append EOS.

        Returns:
            The numbers.
        """
        ids = [self._ids.get(token, UNK) for token in tokenize(text)]
        return [BOS] * bos + ids + [EOS] * eos

    def decode(self, ids: Iterable[int] | Tensor) -> str:
        """Convert token ids to text up to the first EOS; UNK becomes "<unk>".

        Args:
            ids: Token ids, as a sequence or a one-dimensional tensor.

        Returns:
            The text.

        Raises:
            IndexError: If an id is not in the vocabulary.
        """
        return detokenize(self.pieces(ids))

    def pieces(self, ids: Iterable[int] | Tensor) -> list[str]:
        """Return the tokens with these ids, for example to label an attention map.

        The list ends before the first EOS; BOS and PAD are omitted.

        Args:
            ids: Token ids, as a sequence or a one-dimensional tensor.

        Returns:
            The tokens.

        Raises:
            IndexError: If an id is not in the vocabulary.
        """
        pieces = []
        for number in map(int, ids):
            if number == EOS:
                break
            if not 0 <= number < len(self.tokens):
                raise IndexError(f"the token {number} is not in a vocabulary of {len(self.tokens)}")
            if number not in (PAD, BOS):
                pieces.append(self.tokens[number])
        return pieces


# ----------------------------------------------------------------------------------------------------------- the batches


def pad_batch(sequences: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """Stack sequences of different lengths, padded at the end with `PAD`.

    Args:
        sequences: B sequences of token ids.

    Returns:
        The tokens, (B, T) int64 with T the longest length, and a mask, (B, T) bool,
        True at real tokens.

    Raises:
        ValueError: If there are no sequences.
    """
    if not sequences:
        raise ValueError("a batch needs at least one sequence")
    lengths = torch.tensor([len(sequence) for sequence in sequences])
    B, T = len(sequences), int(lengths.max())
    mask = torch.arange(T) < lengths[:, None]  # (B, T)
    tokens = torch.full((B, T), PAD)
    tokens[mask] = torch.tensor([token for sequence in sequences for token in sequence], dtype=torch.int64)
    return tokens, mask


def batches(
    pairs: Sequence[Pair],
    source_vocabulary: Vocabulary,
    target_vocabulary: Vocabulary,
    *,
    batch_size: int,
    seed: int | None = None,
    bucketed: bool = False,
) -> Iterator[Batch]:
    """Iterate over the pairs once, in padded batches.

    Args:
        pairs: The pairs.
        source_vocabulary: Vocabulary of the sources.
        target_vocabulary: Vocabulary of the targets.
        batch_size: Number of pairs per batch; the last batch may have fewer.
        seed: Seed for the order of the pairs; use a different one in every epoch. None
            keeps the order.
        bucketed: Whether to batch pairs of similar length, which needs less padding.
            `seed` then determines the order of the batches; without a seed, short
            batches come first.

    Returns:
        The batches; the same arguments give the same batches.

    Raises:
        ValueError: If `batch_size` is not positive.
    """
    if batch_size < 1:
        raise ValueError(f"expected a batch_size of 1 or more, got {batch_size}")
    encoded = [
        (source_vocabulary.encode(s, eos=True), target_vocabulary.encode(t, bos=True, eos=True)) for s, t in pairs
    ]
    rng = None if seed is None else random.Random(f"batches {seed}")
    if rng is not None:
        rng.shuffle(encoded)
    if bucketed:
        encoded.sort(key=lambda pair: (len(pair[0]), len(pair[1])))
    groups = [encoded[start : start + batch_size] for start in range(0, len(encoded), batch_size)]
    if bucketed and rng is not None:
        rng.shuffle(groups)
    return map(_batch, groups)


def _batch(group: Sequence[tuple[list[int], list[int]]]) -> Batch:
    source, source_mask = pad_batch([source for source, _ in group])
    target, target_mask = pad_batch([target for _, target in group])
    return Batch(source, source_mask, target, target_mask)
