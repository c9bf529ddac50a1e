"""Write CSV files without formulas: a spreadsheet reads every cell as text or a number.

Following OWASP's page on CSV injection, every cell is quoted, and an apostrophe is prepended to text that a spreadsheet would read as a
formula (https://owasp.org/www-community/attacks/CSV_Injection).

Protects against:

- text that begins with ``=``, ``+``, ``-`` or ``@``, also in full width or another Unicode form, and after spaces or invisible characters;
- text with such a character after a semicolon, tab or line break, which a spreadsheet may read as the start of a new cell.

Does not protect against:

- a program that removes the apostrophe when it saves the file;
- names given by a lecturer: chapter names in a header are not changed, because Canvas finds an assignment by its name.
"""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from autograder.grading.reports.grades import Grade

# Where a cell begins, at the latest for a program that separates cells by another sign than commas.
_BEGIN = re.compile(r"(?:^|(?<=[;,|\t\r\n\"]))(?=.)", re.DOTALL)
_FORMULA = frozenset("=+-@\u2212")
_CONTROL = frozenset("\t\r\n")


def number_text(points: float) -> str:
    """Format points as in every export, with two decimals."""
    return f"{points:.2f}"


@dataclass(frozen=True)
class Table:
    """An exported table: its file name, header, rows and grades."""

    name: str
    header: Sequence[str]
    rows: Sequence[Sequence[object]]
    grades: Sequence[Grade]  # the grades in it
    left_out: Sequence[Grade] = ()  # those whose student the platform cannot be told

    @property
    def text(self) -> str:
        # People open tables in Excel, which reads UTF-8 only after a byte order mark; platforms read theirs without.
        mark = "\ufeff" if self.name in ("grades.csv", "totals.csv") else ""
        return mark + csv_text(self.header, self.rows)


def csv_text(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table as CSV, every cell in quotation marks.

    Args:
        header: the first row, written as it is.
        rows: the others. Text is made safe; numbers and dates are no text.
    """
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\r\n")
    writer.writerow(header)
    writer.writerows([safe_cell(value) for value in row] for row in rows)
    return text.getvalue()


def safe_cell(value: object) -> object:
    """Return a cell's value with an apostrophe before each text that a spreadsheet would read as a formula."""
    if not isinstance(value, str):
        return value
    return _BEGIN.sub(lambda match: "'" if _is_formula(value, match.start()) else "", value)


def _is_formula(text: str, begin: int) -> bool:
    """Return whether the text from a position on would be a formula at the beginning of a cell."""
    if begin == 0 and text[0] in _CONTROL:
        return True
    # At most one sign is looked at behind what cannot be seen, so that this takes no longer than the text is long.
    for sign in text[begin : begin + 64]:
        plain = unicodedata.normalize("NFKC", sign)
        if plain.isspace() or not plain or unicodedata.category(sign) in ("Cf", "Cc", "Mn"):
            continue
        return plain[0] in _FORMULA
    return False
