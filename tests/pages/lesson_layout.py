"""What a reader of a lesson sees at 1280 × 900 before anything is unfolded: its cells, its questions and its pictures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

WIDTH, SCREEN = 1280, 900
COLUMNS, LINES = 80, 20
SCREENS_WITHOUT_PICTURE = 4
QUESTIONS = 3

# The tables at a lesson's end are for looking up: the last stretch ends where they begin.
_REFERENCE = "Shapes at a glance"
# An answer ends with the next paragraph that is no figure's caption, or the next heading.
# What a caption says is not looked at: it must not tell.
_MEASURE = """([columns, lines, reference]) => {
    const article = document.querySelector('.bd-article');
    const seen = (selector) => [...article.querySelectorAll(selector)].filter(part => part.checkVisibility());
    const rows = (part) => part.textContent.trimEnd().split('\\n');
    const overflows = (part) => part.scrollWidth > part.clientWidth + 1;
    const beginning = (part) => part.textContent.trim().slice(0, 60);
    const code = seen('.cell_input pre');

    const isAnswerOver = (part) => part.matches('section, h1, h2, h3, h4')
        || part.matches('p') && !/^Figure \\d/.test(part.textContent);
    const isTold = (question) => {
        let folded = 0;
        for (let part = question.nextElementSibling; part && !isAnswerOver(part); part = part.nextElementSibling) {
            if (part.matches('.dropdown')) folded += 1;
            for (const output of part.querySelectorAll('.cell_output')) {
                if (output.checkVisibility()) return true;
                folded += 1;
            }
        }
        return folded === 0;
    };
    const questions = seen('p, .admonition.guess').filter(
        part => part.matches('.guess') || !part.closest('.guess') && /before you unfold/i.test(part.textContent));

    const above = article.getBoundingClientRect().top;
    const top = above + window.scrollY;
    const pictures = seen('img, svg[role=img], .tfcourse-drawing svg, .cell_output > * > *').filter(
            part => !part.parentElement.closest('svg') && (part.matches('img, svg') || part.localName.endsWith('-explorer')))
        .map(part => part.getBoundingClientRect()).filter(box => box.height > 60)
        .map(box => [box.top + window.scrollY, box.bottom + window.scrollY]).sort((a, b) => a[0] - b[0]);
    const tables = [...article.querySelectorAll('h2')].find(head => head.textContent.startsWith(reference));
    const end = (tables ? tables.getBoundingClientRect().top : article.getBoundingClientRect().bottom) + window.scrollY;
    const ends = [...pictures.filter(([begin]) => begin < end), [end, 0]];
    const gaps = [];
    let last = top;
    for (const [begin, end] of ends) {
        gaps.push([Math.round(last), Math.round(begin - last)]);
        last = Math.max(last, end);
    }
    return {
        wide_code: code.filter(part => overflows(part) || rows(part).some(row => row.length > columns)).map(beginning),
        long_code: code.filter(part => rows(part).length > lines).map(beginning),
        wide_output: seen('.cell_output pre').filter(overflows).map(beginning),
        unnamed_folds: seen('details.hide > summary .collapsed').filter(part => /code cell/i.test(part.textContent))
            .map(part => beginning(part.closest('.cell'))),
        told: questions.filter(isTold).map(beginning),
        questions: questions.length,
        first: pictures.length ? (pictures[0][0] + pictures[0][1]) / 2 : Infinity,
        gaps,
    };
}"""


@dataclass(frozen=True)
class Debts:
    """How often a lesson falls short of what every lesson has.

    Attributes:
        wide_code: visible cells that overflow, or have lines of more than 80 columns.
        long_code: visible cells of more than 20 lines.
        wide_output: visible printed outputs that overflow.
        unnamed_folds: folded cells whose line does not say what they do.
        told: questions whose answer is visible beside them, or is nowhere.
        questions: questions that are missing to three.
        first_picture: 1 if less than half of the first picture stands on the first screen.
        gaps: stretches of four screens or more without a picture, before the tables for looking up.
    """

    wide_code: int = 0
    long_code: int = 0
    wide_output: int = 0
    unnamed_folds: int = 0
    told: int = 0
    questions: int = 0
    first_picture: int = 0
    gaps: int = 0


def debts(page: Any) -> tuple[Debts, str]:
    """Return what a lesson owes, and where; the page shows the lesson at 1280 × 900."""
    seen = page.evaluate(_MEASURE, [COLUMNS, LINES, _REFERENCE])
    gaps = [
        f"{height} px from {begin} px" for begin, height in seen["gaps"] if height >= SCREENS_WITHOUT_PICTURE * SCREEN
    ]
    listed = {name: seen[name] for name in ("wide_code", "long_code", "wide_output", "unnamed_folds", "told")} | {
        "gaps": gaps
    }
    counts = {name: len(places) for name, places in listed.items()}
    owed = Debts(
        **counts,
        questions=max(0, QUESTIONS - seen["questions"]),
        first_picture=int(seen["first"] is None or seen["first"] > SCREEN),
    )
    told = [f"{name}: {place!r}" for name, places in listed.items() for place in places]
    told.append(f"{seen['questions']} questions; the first picture's middle is at {seen['first']} px")
    return owed, "\n".join(told)
