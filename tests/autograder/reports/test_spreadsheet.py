"""No text of anybody's is a formula in a spreadsheet, and text that is none stays as it is."""

import csv
import io
from dataclasses import replace

import pytest

from autograder.reports.export import export
from autograder.reports.spreadsheet import csv_text, safe_cell

FORMULAS = [
    *(f"{sign}1+1" for sign in "=+-@"),
    *(f"{sign}1+1" for sign in "＝＋－＠﹦﹢﹣﹫⁼⁺₌−"),
    *(f"{sign}=1+1" for sign in (" ", "\t", "\r", "\n", "\ufeff", "\u200b", "\u00a0", "\u202e")),
    "\tAnn",
    "\rAnn",
]
PLAIN = ["Ada", "O'Neil", "du Châtelet, Émilie", "Li-Wei", "a+b@c.org", "3 - 2", "李小龙", "", "Participant 42"]


@pytest.mark.parametrize("text", FORMULAS, ids=ascii)
def test_a_formula_gets_an_apostrophe(text):
    assert str(safe_cell(text)).startswith("'")
    assert str(safe_cell(text)).replace("'", "") == text


@pytest.mark.parametrize("separator", [";", ",", "|", "\t", "\n", '"'], ids=ascii)
def test_a_formula_behind_a_separator_gets_an_apostrophe(separator):
    assert safe_cell(f"Ann{separator}=1+1{separator}＝2") == f"Ann{separator}'=1+1{separator}'＝2"


@pytest.mark.parametrize("value", [*PLAIN, 1.5, -3.0, True, None])
def test_what_is_no_formula_stays(value):
    assert safe_cell(value) == value


def test_every_cell_is_quoted_and_comes_back():
    text = csv_text(["a", "=header"], [['q"uote', 1], ["new\nline", -2.0]])
    assert text.startswith('"a","=header"\r\n"q""uote","1"')
    assert list(csv.reader(io.StringIO(text, newline="")))[1:] == [['q"uote', "1"], ["new\nline", "-2.0"]]


@pytest.mark.parametrize("form", ["csv", "canvas", "moodle"])
@pytest.mark.parametrize("name", ["=1+1", "＝1+1", "Ann;=1+1"], ids=ascii)
def test_no_export_holds_a_formula(make_grade, tmp_path, form, name):
    grade = make_grade("s1", 1.0, name=(name, name), platform="" if form == "csv" else form)
    grade = replace(
        grade, email=name, canvas_id="901" if form == "canvas" else "", moodle_id="42" if form == "moodle" else ""
    )
    (file,) = export([grade], form, tmp_path)
    cells = [cell for row in csv.reader(file.path.open(encoding="utf-8", newline="")) for cell in row]
    assert safe_cell(name) in " ".join(cells)
    assert not [cell for cell in cells if safe_cell(cell) != cell]


def test_what_platforms_match_on_stays(make_grade, tmp_path):
    one = replace(make_grade("s1", 1.0, name=("=1", "+2"), platform="canvas"), canvas_id="901")
    (canvas,) = export([one, make_grade("s2", 2.0)], "canvas", tmp_path)
    header, _, first, second = csv.reader(canvas.path.open(encoding="utf-8", newline=""))
    assert header[5:] == ["03_scaled_dot_product"]
    assert (first[1], second[3], first[5]) == ("901", "s2", "1.00")
