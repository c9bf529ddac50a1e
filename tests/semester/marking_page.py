"""Mark a chapter over HTTP, by the page that ``tfcourse mark`` serves."""

from __future__ import annotations

import html
import json
import re
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any
from urllib.request import HTTPCookieProcessor, OpenerDirector, Request, build_opener

Points = Callable[[int], float]


@contextmanager
def marking_page(command: Sequence[str], project: Path) -> Iterator[tuple[str, str]]:
    """Run ``tfcourse mark``, yield the address and all that it prints, and stop it with Ctrl-C."""
    process = subprocess.Popen([*command, "--no-browser"], cwd=project, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        printed = ""
        while "Stop with Ctrl-C" not in printed:
            line = process.stderr.readline()
            assert line, printed
            printed += line
        yield printed.rpartition("Mark them at ")[2].split()[0], printed
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


def mark_answers_in_words(address: str, points: Points, comment: str) -> dict[str, int]:
    """Give points to every group of answers in words, and a comment to the first group of each question.

    Args:
        address: the address that opens the page.
        points: the points of the group with a number.
        comment: the comment.

    Returns:
        How many groups each question has.
    """
    browser, site, overview = _open(address)
    return {
        question: _mark_question(browser, f"{site}/question/{question}", points, comment)
        for question in re.findall(r'href="/question/(\w+)"', overview.partition("In words</h2>")[2])
    }


def mark_largest_group(address: str, exercise: str, points: float, comment: str) -> int:
    """Give points and a comment to the group of an exercise with most members; return how many groups there are."""
    browser, site, overview = _open(address)
    assert f'href="/question/{exercise}"' in overview
    page = f"{site}/question/{exercise}"
    xsrf, groups = _read_groups(browser, page)
    largest = max(groups, key=len)
    answer = json.loads(
        _read(browser, f"{page}/give", {"members": largest, "points": points, "comment": comment}, xsrf)
    )
    assert (answer["open"], answer["members"].keys()) == ([], largest.keys())
    return len(groups)


def mark_with_rubric(address: str) -> list[tuple[str, list[str], float]]:
    """Tick items for every group of answers in words, a half item among them; type the points with a comma.

    Args:
        address: the address that opens a page with names.

    Returns:
        The question, the ids of the students and their points, for every group.
    """
    browser, site, overview = _open(address)
    marked = []
    for question in re.findall(r'href="/question/(\w+)"', overview.partition("In words</h2>")[2]):
        page = f"{site}/question/{question}"
        text = _read(browser, page)
        xsrf, groups = _read_groups(browser, page)
        worths = [float(worth) for worth in re.findall(r'id="item-\d+" value="([^"]*)"', text)]
        version = re.search(r'data-rubric="([^"]*)"', text)
        assert version
        assert worths
        names = re.findall(r'<p class="students">(.*?)</p>', text)
        for number, (members, who) in enumerate(zip(groups, names, strict=True)):
            ticks = [(1.0, 0.5, 0.0)[(number + item) % 3] for item in range(len(worths))]
            points = sum(worth * share for worth, share in zip(worths, ticks, strict=True))
            mark = {"members": members, "points": f"{points:g}".replace(".", ","), "comment": "", "ticks": ticks}
            answer = json.loads(_read(browser, f"{page}/give", {**mark, "rubric": version[1]}, xsrf))
            assert answer["points"] == points
            marked.append((question, _ids(who), points))
    return marked


def mark_group(address: str, exercise: str, points: str, comment: str) -> list[str]:
    """Type points and a comment for the largest group of an exercise; return the ids of its students.

    Args:
        address: the address that opens a page with names.
        exercise: the exercise.
        points: the points as they are typed.
        comment: the comment.
    """
    browser, site, _ = _open(address)
    page = f"{site}/question/{exercise}"
    xsrf, groups = _read_groups(browser, page)
    articles = _read(browser, page).split("<article")[1:]
    largest = max(range(len(groups)), key=lambda number: len(groups[number]))
    _read(browser, f"{page}/give", {"members": groups[largest], "points": points, "comment": comment}, xsrf)
    labels = re.findall(r'<input type="checkbox" checked> (.*?)</label>', articles[largest])
    return [student for label in labels for student in _ids(label)]


def _ids(text: str) -> list[str]:
    """Return the ids in brackets behind students' names."""
    return re.findall(r"\(([^()]*)\)", html.unescape(text))


def _mark_question(browser: OpenerDirector, address: str, points: Points, comment: str) -> int:
    xsrf, groups = _read_groups(browser, address)
    for number, members in enumerate(groups):
        mark = {"members": members, "points": points(number), "comment": "" if number else comment}
        answer = json.loads(_read(browser, f"{address}/give", mark, xsrf))
        assert answer["waiting"] < sum(len(group) for group in groups[number:])
    return len(groups)


def _open(address: str) -> tuple[OpenerDirector, str, str]:
    """Return a browser that has opened the page, the address of the site, and the overview of the questions."""
    browser = build_opener(HTTPCookieProcessor(CookieJar()))
    return browser, address.partition("/open")[0], _read(browser, address)


def _read_groups(browser: OpenerDirector, address: str) -> tuple[str, list[dict[str, str]]]:
    """Return what a mark must carry against forgery, and the members of each group."""
    page = _read(browser, address)
    xsrf = re.search(r'name="xsrf" content="([^"]*)"', page)
    assert xsrf is not None
    return xsrf[1], [json.loads(html.unescape(members)) for members in re.findall(r'data-members="([^"]*)"', page)]


def _read(browser: OpenerDirector, address: str, data: Any = None, xsrf: str = "") -> str:
    body = None if data is None else json.dumps(data).encode()
    with browser.open(Request(address, body, {"X-XSRFToken": xsrf} if xsrf else {})) as response:
        return str(response.read().decode())
