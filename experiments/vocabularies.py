"""How published tokenizers cut texts, and which words lie close together in a published embedding table: what lesson 06 reads.

    python -m pip install --no-deps --target build/vocabularies openai-whisper mistral-common clip-anytorch wordllama sentencepiece
    python experiments/vocabularies.py --packages build/vocabularies --record tfcourse/recorded/vocabularies.json

The first four packages carry real vocabularies, and the last one cuts with Mistral's; none of them is a dependency of the course. The
record has pieces, numbers and cosines, and names the owners. GPT-2's 50,000 merges go into `gpt2_merges.txt` beside it. There is no table
of embeddings, and nothing from a package that does not state its licence.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import json
import platform
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import distributions
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

from tfcourse.data import prose

# The first article of the Universal Declaration of Human Rights: one sentence, in the public domain, in every language.
ARTICLE = {
    "English": "All human beings are born free and equal in dignity and rights.",
    "German": "Alle Menschen sind frei und gleich an Würde und Rechten geboren.",
    "French": "Tous les êtres humains naissent libres et égaux en dignité et en droits.",
    "Polish": "Wszyscy ludzie rodzą się wolni i równi pod względem swej godności i swych praw.",
    "Greek": "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα.",
    "Hindi": "सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है।",
}
# Eight spaces or more in front of most lines: what a tokenizer of web pages makes of a program.
CODE = """def greet(names):
    for name in names:
        if name:
            print(f"Hello, {name}!")
"""
TEXTS = (
    *(" the", "Hello world", "HELLO WORLD", "Brobdingnag", "The detective investigated", "unaffable", "universally"),
    *(
        "strawberry",
        " strawberry",
        "1234567890",
        "2 + 2 = 4",
        "677 + 804 = 1481",
        "don't",
        "DON'T",
        "東京",
        "é東",
        "🙂",
    ),
    *("The capital of France is", "The capital of France is ", "    return x", " SolidGoldMagikarp"),
    *("Dzień dobry, jak się masz?", "L'accord sur la zone économique européenne a été signé en août 1992."),
    *ARTICLE.values(),
    CODE,
)
# Tokens that stand in GPT-2's vocabulary and hardly ever in a text (Rumbelow and Watkins, 2023).
GLITCHES = (" SolidGoldMagikarp", " TheNitromeFan", " davidjl", " attRot", "StreamerBot")
WORDS = (
    *("Monday", "January", "Paris", "Germany", "king", "doctor"),
    *("red", "seven", "water", "dog", "walked", "quickly"),
)
SIZES = (300, 512, 1024, 2048, 4096, 8192)
NEIGHBOURS = 6


def main() -> None:
    """Cut the texts, look for neighbours, and write the record."""
    options = _options()
    data, merges = record(options.packages)
    options.record.parent.mkdir(parents=True, exist_ok=True)
    lines = (f"{left} {right}\n" for left, right in merges)
    options.record.with_name("gpt2_merges.txt").write_text("".join(lines), encoding="utf-8")
    options.record.write_text(
        json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace('],"', '],\n"') + "\n", encoding="utf-8"
    )
    print(f"{options.record}: {options.record.stat().st_size:,} bytes")


def record(packages: Path) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """Return what the lesson reads: the record, and GPT-2's merges."""
    sys.path.insert(0, str(packages))
    ranks = tiktoken_ranks(packages / "whisper" / "assets" / "gpt2.tiktoken")
    merges = recovered_merges(ranks)
    gpt2 = byte_level(ranks, merges)
    cutters = {"GPT-2": gpt2, "CLIP": clip(packages / "clip" / "bpe_simple_vocab_16e6.txt.gz")}
    mistral = _mistral(packages / "mistral_common" / "data" / "tokenizer.model.v1")
    tekken = Tekken(packages / "mistral_common" / "data" / "tekken_240911.json")
    cuts = []
    for text in TEXTS:
        encoded = {name: cutter.encode(text) for name, cutter in cutters.items()}
        shown = {name: {"pieces": one.tokens, "ids": one.ids} for name, one in encoded.items()}
        ids = mistral.encode(text)
        shown["Mistral"] = {"pieces": [mistral.id_to_piece(one) for one in ids], "ids": ids}
        shown["Tekken"] = tekken.encode(text)
        cuts.append({"text": text, **shown})
    weights = load_file(packages / "wordllama" / "weights" / "l2_supercat_256.safetensors")["embedding.weight"]
    vocabulary = json.loads(
        (packages / "wordllama" / "tokenizers" / "l2_supercat_tokenizer_config.json").read_text("utf-8")
    )["model"]["vocab"]
    data = {
        "generated": "by python experiments/vocabularies.py; change that command and run it again, not this file",
        "sources": _sources(packages),
        "sizes": {
            "GPT-2": len(ranks) + 1,
            "CLIP": cutters["CLIP"].get_vocab_size() + 2,
            "Mistral": len(mistral),
            "Tekken": tekken.size,
        },
        "article": ARTICLE,
        "cuts": cuts,
        "gpt2": gpt2_facts(gpt2),
        "neighbours": neighbours(weights.float(), vocabulary, WORDS),
        "prose": {"python": platform.python_version(), "bytes_per_token": prose_curve(prose(), SIZES)},
    }
    return data, merges


# ------------------------------------------------------------------------------------------------------- GPT-2


def tiktoken_ranks(file: Path) -> dict[bytes, int]:
    """Return the pieces of a file of tiktoken with their numbers."""
    lines = (line.split() for line in file.read_text("ascii").splitlines() if line)
    return {base64.b64decode(piece): int(rank) for piece, rank in lines}


def recovered_merges(ranks: Mapping[bytes, int]) -> list[tuple[str, str]]:
    """Return the merges from which pieces came, in order: each piece, cut by the merges before it, has two parts."""
    names = _byte_names()
    merges = []
    for piece, rank in sorted(ranks.items(), key=lambda item: item[1]):
        parts = [piece[i : i + 1] for i in range(len(piece))]
        while len(parts) > 2:
            # Its own rank is not lower than itself, so the last two parts stay.
            pairs = [(ranks.get(a + b, rank), i) for i, (a, b) in enumerate(pairwise(parts))]
            best, at = min(pairs)
            if best >= rank:
                raise ValueError(f"piece {piece!r} does not come from a merge of two earlier ones: {parts}")
            parts[at : at + 2] = [parts[at] + parts[at + 1]]
        if len(parts) == 2:
            left, right = ("".join(names[byte] for byte in part) for part in parts)
            merges.append((left, right))
    return merges


def byte_level(ranks: Mapping[bytes, int], merges: Sequence[tuple[str, str]]) -> Tokenizer:
    """Return GPT-2's tokenizer."""
    names = _byte_names()
    vocabulary = {"".join(names[byte] for byte in piece): rank for piece, rank in ranks.items()}
    cutter = Tokenizer(models.BPE(vocabulary, list(merges)))
    cutter.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    return cutter


def gpt2_facts(gpt2: Tokenizer) -> dict[str, Any]:
    """Return what the lesson says of GPT-2's vocabulary as a whole."""
    pieces = list(gpt2.get_vocab())
    numbers = {
        str(digits): sum(
            len(gpt2.encode(str(n)).ids) == 1 for n in range(10 ** (digits - 1) if digits > 1 else 0, 10**digits)
        )
        for digits in (1, 2, 3, 4)
    }
    single = {text: gpt2.encode(text).ids for text in GLITCHES}
    text = prose()
    tokens = gpt2.encode(text).tokens
    return {
        "with_space": sum(piece.startswith("Ġ") and len(piece) > 1 for piece in pieces),
        "numbers_in_one": numbers,
        "glitches": {text: ids[0] for text, ids in single.items() if len(ids) == 1},
        "bytes_per_token": round(len(text.encode()) / len(tokens), 3),
        "single_spaces": round(tokens.count("Ġ") / len(tokens), 3),
    }


def _byte_names() -> list[str]:
    """The characters that stand for the 256 bytes in GPT-2's vocabulary."""
    shown = {*range(33, 127), *range(161, 173), *range(174, 256)}
    hidden = iter(range(256, 512))
    return [chr(byte if byte in shown else next(hidden)) for byte in range(256)]


# ---------------------------------------------------------------------------------------------- CLIP, Mistral


def clip(file: Path) -> Tokenizer:
    """Return CLIP's tokenizer: lower case, and a mark at the end of each word."""
    lines = gzip.decompress(file.read_bytes()).decode("utf-8").splitlines()[1 : 49152 - 256 - 2 + 1]
    merges = [(left, right) for left, right in (line.split() for line in lines)]
    base = sorted(_byte_names(), key=lambda name: (ord(name) > 255, ord(name)))
    pieces = [*base, *(name + "</w>" for name in base), *(left + right for left, right in merges)]
    cutter = Tokenizer(models.BPE({piece: i for i, piece in enumerate(pieces)}, merges, end_of_word_suffix="</w>"))
    cutter.normalizer = normalizers.Sequence(
        [normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()]
    )
    words = Regex(r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+")
    cutter.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(words, behavior="removed", invert=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    return cutter


def _mistral(file: Path) -> Any:
    import sentencepiece

    return sentencepiece.SentencePieceProcessor(model_file=str(file))


class Tekken:
    """Mistral's later tokenizer: bytes, and the pair with the smallest rank is merged first, as in tiktoken."""

    def __init__(self, file: Path) -> None:
        """Read the pieces that are in use, and the rule that comes first."""
        content = json.loads(file.read_text("utf-8"))
        config = content["config"]
        self.size: int = config["default_vocab_size"]
        self._special: int = config["default_num_special_tokens"]
        pieces = content["vocab"][: self.size - self._special]
        self._ranks = {base64.b64decode(piece["token_bytes"]): piece["rank"] for piece in pieces}
        self._cutter = pre_tokenizers.Split(Regex(config["pattern"]), behavior="isolated")

    def encode(self, text: str) -> dict[str, list[Any]]:
        """Return the tokens of a text, written in byte characters, with their ids."""
        names = _byte_names()
        parts = [part for piece, _ in self._cutter.pre_tokenize_str(text) for part in self._cut(piece.encode())]
        pieces = ["".join(names[byte] for byte in part) for part in parts]
        return {"pieces": pieces, "ids": [self._special + self._ranks[part] for part in parts]}

    def _cut(self, piece: bytes) -> list[bytes]:
        if piece in self._ranks:
            return [piece]
        parts = [piece[i : i + 1] for i in range(len(piece))]
        while len(parts) > 1:
            rank, at = min((self._ranks.get(a + b, self.size), i) for i, (a, b) in enumerate(pairwise(parts)))
            if rank == self.size:
                break
            parts[at : at + 2] = [parts[at] + parts[at + 1]]
        return parts


# ----------------------------------------------------------------------------------------- embeddings and sizes


def neighbours(
    weights: torch.Tensor, vocabulary: Mapping[str, int], words: Iterable[str]
) -> dict[str, list[tuple[str, float]]]:
    """Return the nearest words of each word by the cosine, of the pieces that are whole lower- or upper-case words."""
    unit = weights / weights.norm(dim=1, keepdim=True)
    whole = {number: piece[1:] for piece, number in vocabulary.items() if re.fullmatch(r"▁[A-Za-z]{2,}", piece)}
    found = {}
    for word in words:
        cosines = unit @ unit[vocabulary[f"▁{word}"]]
        order = [number for number in cosines.argsort(descending=True).tolist() if number in whole]
        others = [number for number in order if whole[number].lower() != word.lower()][:NEIGHBOURS]
        found[word] = [(whole[number], round(cosines[number].item(), 3)) for number in others]
    return found


def prose_curve(text: str, sizes: Sequence[int]) -> dict[str, float]:
    """Return bytes per token of a text, cut by vocabularies of several sizes that were trained on it."""
    pretokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    counts = Counter(piece for piece, _ in pretokenizer.pre_tokenize_str(text))
    curve = {}
    for size in sizes:
        trained = Tokenizer(models.BPE())
        trained.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(vocab_size=size, initial_alphabet=alphabet, min_frequency=0, show_progress=False)
        trained.train_from_iterator((" ".join([piece] * count) for piece, count in counts.items()), trainer)
        tokens = sum(count * len(trained.encode(piece).ids) for piece, count in counts.items())
        curve[str(size)] = round(len(text.encode()) / tokens, 3)
    return curve


def _sources(packages: Path) -> dict[str, dict[str, str]]:
    licences = {
        "openai-whisper": ("MIT", "Copyright (c) 2022 OpenAI", "GPT-2's pieces"),
        "clip-anytorch": ("MIT", "Copyright (c) 2021 OpenAI", "CLIP's merges"),
        "mistral-common": ("Apache-2.0", "Copyright 2024 Mistral AI", "Mistral's SentencePiece model and Tekken"),
        "wordllama": (
            "MIT",
            "Copyright (c) 2024 Lee Miller",
            "an embedding table that was made from Llama 2; only cosines are recorded",
        ),
    }
    found = {one.metadata["Name"].replace("_", "-"): one for one in distributions(path=[str(packages)])}
    sources = {}
    for name, (licence, owner, what) in licences.items():
        texts = [Path(str(file.locate())) for file in found[name].files or () if file.name == "LICENSE"]
        if not any(owner in text.read_text("utf-8") for text in texts):
            raise ValueError(f"{name} {found[name].version} no longer says {owner!r}: look at its licence")
        sources[name] = {"version": found[name].version, "licence": licence, "copyright": owner, "what": what}
    return sources


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--packages", type=Path, required=True, help="the folder into which the packages were installed"
    )
    parser.add_argument("--record", type=Path, required=True, help="where to write what the lesson reads")
    return parser.parse_args()


if __name__ == "__main__":
    main()
