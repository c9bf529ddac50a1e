"""Texts and scenes: parallel text from files, a data set in the layout of WMT's, prose, and boxes that can be found."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tfcourse.data import (
    date_pairs,
    number_pairs,
    parallel_pairs,
    prose,
    scenes,
    wmt_pairs,
)

# -------------------------------------------------------------------------------------------------------- parallel text


def test_parallel_text_is_read_line_by_line_without_blank_and_repeated_pairs(tmp_path):
    (tmp_path / "text.en").write_text("One  house\n\nTwo houses\nOne house\nThree\n", encoding="utf-8")
    (tmp_path / "text.de").write_text("Ein Haus\nLeer\nZwei\xa0Häuser\nEin Haus\nDrei\n", encoding="utf-8")
    files = tmp_path / "text.en", tmp_path / "text.de"
    assert parallel_pairs(*files) == [("One house", "Ein Haus"), ("Two houses", "Zwei Häuser"), ("Three", "Drei")]
    assert parallel_pairs(*files, count=2) == [("One house", "Ein Haus"), ("Two houses", "Zwei Häuser")]


WMT_CARD = """\
---
configs:
- config_name: de-en
  data_files:
  - {split: train, path: train.jsonl}
  - {split: validation, path: validation.jsonl}
  - {split: test, path: test.jsonl}
---
"""


@pytest.fixture
def wmt_folder(tmp_path):
    """A data set in the layout of WMT's, of four sentences."""
    sentences = {
        "train": [("Das Haus ist alt.", "The house is old."), ("Sie liest.", "She reads."), ("", "Nothing.")],
        "validation": [("Er schläft.", "He sleeps.")],
        "test": [("Guten Morgen!", "Good morning!")],
    }
    (tmp_path / "README.md").write_text(WMT_CARD, encoding="utf-8")
    for split, pairs in sentences.items():
        rows = [json.dumps({"translation": {"de": de, "en": en}}) for de, en in pairs]
        (tmp_path / f"{split}.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return tmp_path


def test_a_pair_of_wmt_is_loaded_in_either_direction_and_by_split(wmt_folder):
    forth = wmt_pairs("en", "de", dataset=wmt_folder)
    assert forth == [("The house is old.", "Das Haus ist alt."), ("She reads.", "Sie liest.")]
    assert wmt_pairs("de", "en", dataset=wmt_folder, count=1) == [forth[0][::-1]]
    assert wmt_pairs("de", "en", split="test", dataset=wmt_folder) == [("Guten Morgen!", "Good morning!")]
    assert wmt_pairs("de", "en", split="validation", dataset=wmt_folder, count=None) == [("Er schläft.", "He sleeps.")]


# ---------------------------------------------------------------------------------------------------- without libraries


@pytest.mark.parametrize(
    ("call", "package", "extra"),
    [
        (lambda: number_pairs(count=1), "num2words", "data"),
        (lambda: date_pairs(count=1), "babel", "data"),
        (lambda: wmt_pairs(count=1), "datasets", "corpora"),
    ],
    ids=["numbers", "dates", "wmt"],
)
def test_without_its_library_a_loader_says_what_to_install(monkeypatch, call, package, extra):
    for name in [name for name in sys.modules if name.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=rf"pip install {package}, or pip install 'tfcourse\[{extra}\]'"):
        call()


def test_the_module_is_imported_without_any_of_them():
    program = "import sys, tfcourse.data; sys.exit(any(n in sys.modules for n in ('num2words', 'babel', 'datasets')))"
    root = Path(__file__).parents[2]
    assert subprocess.run([sys.executable, "-c", program], check=False, cwd=root).returncode == 0


# -------------------------------------------------------------------------------------------------------------- prose


def test_prose_is_the_language_reference_with_its_lines_and_signs() -> None:
    text = prose()
    assert 400_000 < len(text) < 700_000
    assert text.startswith('The "assert" statement')
    assert "\n\n" in text
    assert 80 < len(set(text)) < 200


def test_scenes_are_the_same_for_a_seed_and_hold_one_to_three_boxes_that_do_not_touch() -> None:
    made, again, other = scenes(30, seed=1), scenes(30, seed=1), scenes(30, seed=2)
    assert made.images.shape == (30, 1, 24, 24)
    assert torch.equal(made.images, again.images)
    assert not torch.equal(made.images, other.images)
    assert {len(kinds) for kinds in made.labels} == {1, 2, 3}
    assert {int(kind) for kinds in made.labels for kind in kinds} == {0, 1, 2}
    for boxes in made.boxes:
        low, high = boxes[:, :2] - boxes[:, 2:] / 2, boxes[:, :2] + boxes[:, 2:] / 2
        assert bool((low >= 0).all())
        assert bool((high <= 1 + 1e-6).all())
        for i in range(len(boxes)):
            for j in range(i):
                assert bool((low[i] > high[j]).any()) or bool((low[j] > high[i]).any())


def test_boxes_of_a_scene_are_where_the_picture_is_dark() -> None:
    made = scenes(20, seed=5)
    for image, kinds, boxes in zip(made.images[:, 0], made.labels, made.boxes, strict=True):
        for kind, (x, y, width, height) in zip(kinds.tolist(), (24 * boxes).tolist(), strict=True):
            left, top = round(x - width / 2), round(y - height / 2)
            inside = image[top : top + round(height), left : left + round(width)]
            assert inside[0].min() == inside[-1].min() == inside[:, 0].min() == inside[:, -1].min() == 1
            assert (inside.min() == 1) == (kind == 0)
