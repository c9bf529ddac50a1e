"""The recorded runs: each is that of the command as it is now, small, and of the form that lessons read; nothing examined was read."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from tfcourse.data import UNK, number_split, tokenize
from tfcourse.rotary import rotary_frequencies

ROOT = Path(__file__).parents[2]
RECORDED, RESULTS = ROOT / "tfcourse" / "recorded", ROOT / "experiments" / "results"


def lengths(rows: Any) -> Any:
    """The numbers of items, by name where there are names."""
    return {name: len(row) for name, row in rows.items()} if isinstance(rows, dict) else [len(row) for row in rows]


def split_in_parts(script: Any) -> tuple[int, int]:
    """How many numbers there are to read, to test and to tune on, and how many different ones."""
    parts = [set(script.TO_READ), set(script.TO_TEST), set(script.TO_TUNE)]
    assert 700 * max(script.SEEDS) + 2 * max(script.LABELS) <= len(script.TO_TUNE)
    return len(set.union(*parts)), sum(map(len, parts))


def looked_at(script: Any, record: Any) -> bool:
    """Whether every translation that is shown has a row of weights for each of its tokens."""
    for run in record["runs"]:
        for shown, looked in zip(record["shown"], run["looked"] or (), strict=bool(run["looked"])):
            assert looked["source"] == [*tokenize(shown["source"]), "<eos>"]
            assert (looked["target"] == [*tokenize(shown["target"]), "<eos>"]) == looked["right"]
            for matrix in looked["weights"].values():
                assert lengths(matrix) == [len(looked["source"])] * len(looked["target"])
    return True


def overlap(script: Any) -> Any:
    """The texts of T5's tasks that are read and examined."""
    texts = script.Texts()
    assert all(UNK not in texts.pair(task, pair)[0] for task in script.TASKS for pair in texts.train[task][:200])
    read, asked = (
        {(task, p.source) for task in script.TASKS for p in part[task]} for part in (texts.train, texts.test)
    )
    return read & asked, lengths(texts.test)


def same_digits(script: Any) -> int:
    """How many digits of the examination are among those that are read."""
    train, test = ({tuple(image.flatten().tolist()) for image in part.images} for part in script.digits())
    return len(train & test)


def stretch(script: Any) -> Any:
    """The numbers of trained and examined characters."""
    text = script.Text()
    return len(text.train), text.test.numel()


def turns(script: Any) -> int:
    """How many pairs turn once at least within a training text."""
    return int((rotary_frequencies(script.D // script.H) * (script.TRAINED - 1) / (2 * torch.pi) >= 1).sum())


# By script: where the record is, and pairs of what it holds and what it should hold.
FORMS: dict[str, Callable[[Any, Any], list[tuple[Any, Any]]]] = {
    "bert": lambda s, r: [
        (split_in_parts(s), (26_000, 26_000)),
        (list(r["finetuning"]), [str(labels) for labels in s.LABELS]),
        ({len(runs) for row in r["finetuning"].values() for runs in row.values()}, {len(s.SEEDS)}),
        ([gap["number"] for gap in r["gaps"]], list(s.SHOWN)),
        (r["vocabulary"], list(s.NAMES.vocabulary.tokens)),
        (
            [
                [token for place, token in enumerate(gap["tokens"]) if number >> place & 1 and token not in shares]
                for gap in r["gaps"]
                for number, gaps in enumerate(gap["guesses"])
                for shares in [{token for guess in gaps for token, _ in guess}]
            ],
            [[] for gap in r["gaps"] for _ in gap["guesses"]],
        ),
    ],
    "gpt": lambda s, r: [
        (len(set(split_in_parts(s))), 1),
        ([step for step, *_ in r["prose"]["curve"]], list(s.EXAMINED)),
        ([len(losses) for *_, losses in r["scaling"]["runs"]], [len(s.SEEDS)] * len(s.WIDTHS)),
        (list(r["finetuning"]), [str(labels) for labels in s.LABELS]),
    ],
    "gpt_writes": lambda s, r: [
        ((r["steps"], r["prompt"], list(r["settings"])), (s.STEPS, s.PROMPT, list(s.SETTINGS))),
        ((len(r["p_greedy"]), len(r["p_real"])), (101, 101)),
        ([line for text in [s.Text()] for line in text.test if line in text.read], []),
    ],
    "grouped_queries": lambda s, r: [
        (stretch(s), (s.TRAIN_CHARACTERS, s.EXAMINED)),
        ((r["steps"], r["tuning"]), (s.STEPS, s.TUNING)),
        (lengths(r["losses"]), {str(groups): len(s.SEEDS) for groups in s.GROUPS}),
        (lengths(r["conversion"]), {f"{way} {few}": len(s.SEEDS) for way in s.WAYS for few in (2, 1)}),
    ],
    "llama_writes": lambda s, r: [
        ((r["steps"], r["prompt"]), (s.STEPS, s.PROMPT)),
        (r["loss"] < r["untrained_loss"], True),
        (r["text"][: len(s.PROMPT)], s.PROMPT),
    ],
    "positions": lambda s, r: [
        (stretch(s), (s.TRAIN_CHARACTERS, s.EXAMINED + 1)),
        (r["lengths"], list(s.LENGTHS)),
        ({*r["curves"], *r["by place"]}, set(s.KINDS)),
        ([lengths(x) for x in r["curves"].values()], [[len(s.LENGTHS)] * len(s.SEEDS)] * len(r["curves"])),
        ([lengths(run) for run in r["pairings"]], [{"trained": 8, "other": 8}] * len(s.SEEDS)),
        (lengths(r["stretched"]), [8] * len(s.SEEDS)),
    ],
    "rotary_controls": lambda s, r: [
        ([len(r[way]) for way in ("all pairs", "fast pairs", "continued at 64")], [len(s.LENGTHS)] * 3),
        (turns(s), s.FAST),
        (s.TUNING[0] * s.TUNED % s.TRAINED, 0),
    ],
    "sampling": lambda s, r: [
        (r["seeds"], list(s.SEEDS)),
        (
            [
                {name: len(found) for name, found in run.items()}["temperature"]
                for task in ("names", "prose")
                for run in r[task]
            ],
            [len(s.TEMPERATURES)] * 2 * len(s.SEEDS),
        ),
        (
            {*r["names"][0]} ^ {*r["prose"][-1]} ^ {"temperature", *s.FILTERS, *s.ORDERS},
            {"temperature", *s.FILTERS, *s.ORDERS},
        ),
        ({len(run[key]) for run in r["greedy"] for key in ("text", "p_text", "p_real")}, {s.NEW}),
    ],
    "sentence_vectors": lambda s, r: [
        ((r["source"]["sha256"], r["source"]["licence"]), (s.WEIGHTS, "Apache-2.0")),
        ({round(sum(row)) for head in r["heads"]["shown"].values() for row in head["weights"]}, {1}),
    ],
    "t5": lambda s, r: [
        (overlap(s), (set(), dict.fromkeys(s.TASKS, s.EXAMINED))),
        (r["vocabulary"], len(s.Texts().vocabulary)),
        (list(r["runs"]), [str(labels) for labels in s.LABELS]),
        ([lengths(row) for row in r["runs"].values()], [{"from scratch": 2, "spans first": 2}] * len(r["runs"])),
        (list(r["beginnings"]), [str(spread) for spread in s.SPREADS]),
    ],
    "translation": lambda s, r: [
        ((r["task"], r["budget"]), (vars(s.Task()), vars(s.Budget()))),
        ({run["name"]: run["rate"] for run in r["runs"]}, {name: x.rate for name, x in s.TRANSLATORS.items()}),
        ([number_split(number) for number in s.SHOWN], ["test"] * 4),
        (looked_at(s, r), True),
    ],
    "vision": lambda s, r: [
        (same_digits(s), 0),
        (
            {len(run) for way in ("ways", "moved") for x in r["digits"][way].values() for run in x["right"]},
            {len(s.SHIFTS)},
        ),
        ({len(x["right"]) for x in r["digits"]["moved"].values()}, {len(s.MOVED_SEEDS), 1}),
        (set(lengths(r["digits"]["fewer"]).values()), {len(s.FEWER)}),
        ([len(r["scenes"][way]) for way in ("matched", "in order", "in order, longer")], [2, 2, 1]),
        (
            {
                len(table[way])
                for table in r["tables"].values()
                for way in ("feature tokens", "boosted trees", "linear")
            },
            {len(s.SPLITS)},
        ),
    ],
    "vocabularies": lambda s, r: [
        (([cut["text"] for cut in r["cuts"]], list(r["neighbours"])), (list(s.TEXTS), list(s.WORDS))),
        ({source["licence"] for source in r["sources"].values()}, {"MIT", "Apache-2.0"}),
        ([key for x in r["sources"].values() for key in ("version", "what", "copyright") if not x[key]], []),
        (r["gpt2"]["glitches"][" SolidGoldMagikarp"], 43_453),
    ],
}


@pytest.mark.parametrize("name", FORMS)
def test_a_record_is_that_of_its_command_and_has_the_form_that_lessons_read(
    name: str, experiment: Callable[[str], ModuleType]
) -> None:
    script: Any = experiment(name)
    places = [folder / f"{name.replace('gpt_writes', 'writing')}.json" for folder in (RECORDED, RESULTS)]
    file = next(place for place in places if place.exists())
    record = json.loads(file.read_text(encoding="utf-8"))
    assert file.stat().st_size < 60_000
    if hasattr(script, "COMMAND"):
        assert script.COMMAND in record.get("generated", "") + record.get("command", "")
    for number, (found, expected) in enumerate(FORMS[name](script, record)):
        assert found == expected, number
