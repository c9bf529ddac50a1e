"""The eyes on the ground see: whatever an attack could take or leave is noticed when it is there."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from .attack import Attack
from .battle import fight
from .ground import CANARIES, CHAPTER, LIGHT, Ground, ground

ATTACK = Attack(name="a test of the eyes", story="Does what the test says.", wants="to be seen")
STUDENT = "s01"


@pytest.fixture
def place() -> Iterator[Ground]:
    with ground(LIGHT) as made:
        yield made


def soon(condition: Callable[[], bool]) -> bool:
    """Wait for what another thread or process is about to do."""
    for _ in range(200):
        if condition():
            return True
        time.sleep(0.02)
    return False


def shown(place: Ground, text: str) -> None:
    """Put a text among the outputs of the attacker's notebook."""
    path = place.course / "autograded" / STUDENT / CHAPTER / f"{CHAPTER}.ipynb"
    path.parent.mkdir(parents=True)
    cell = new_code_cell("", outputs=[new_output("stream", text=text)])
    nbformat.write(new_notebook(cells=[cell]), path)


def test_each_canary_that_was_read_is_noticed_and_what_an_attack_says_of_itself(place: Ground) -> None:
    shown(place, " ".join([*CANARIES.values(), f"WON {ATTACK.mark} gets in"]))
    assert place.traces(ATTACK, STUDENT) == [*(f"reads {what}" for what in CANARIES), "gets through: gets in"]


def test_every_canary_is_where_it_should_be(place: Ground) -> None:
    known = place.preamble(ATTACK, STUDENT)
    assert not [value for value in CANARIES.values() if value in known], "an attack knows none beforehand"
    place.hand_in_honest("s02")
    everything = b"".join(path.read_bytes() for path in place.folder.rglob("*") if path.is_file())
    everything += json.dumps(place.environment()).encode()
    assert [name for name, value in CANARIES.items() if value.encode() not in everything] == []


def test_what_a_page_tells_is_noticed(place: Ground) -> None:
    loud = Attack(name="a word home", story="Says it aloud.", wants="more", cells=('raise ValueError("a wo" "rd")',))
    quiet = replace(loud, name="another word home", home="another word")
    seen = fight(place, (replace(loud, home="a word"), quiet), walls=False)
    assert [len(traces) for traces in seen.traces.values()] == [1, 0]


def test_files_left_behind_are_noticed(place: Ground) -> None:
    shared = Path("/dev/shm") / ATTACK.mark
    lefts = {
        place.folder / folder / ATTACK.mark: "here" for folder in ("outside", "home/.config", "tmp", "course/results")
    }
    for left, text in {**lefts, shared: "here", place.home / "startup.py": f"x = '{ATTACK.mark}'"}.items():
        left.parent.mkdir(parents=True, exist_ok=True)
        left.write_text(text)
        assert len(place.traces(ATTACK, STUDENT)) == 1, left
        left.unlink(missing_ok=True)
    assert not shared.exists()


def test_a_process_left_behind_is_noticed_and_ended(place: Ground) -> None:
    left = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)", ATTACK.mark])
    assert soon(lambda: ATTACK.mark.encode() in Path(f"/proc/{left.pid}/cmdline").read_bytes())
    assert ["process" in trace for trace in place.traces(ATTACK, STUDENT)] == [True]
    assert left.wait(10) == -signal.SIGKILL


@pytest.mark.parametrize("way", ["tcp", "udp", "abstract", "named"])
def test_a_word_over_the_network_is_heard(place: Ground, way: str) -> None:
    family = socket.AF_INET if way in ("tcp", "udp") else socket.AF_UNIX
    address = {"tcp": ("127.0.0.1", place.tcp), "udp": ("127.0.0.1", place.udp), "abstract": f"\0{place.abstract}"}
    with socket.socket(family, socket.SOCK_DGRAM if way == "udp" else socket.SOCK_STREAM) as speaker:
        speaker.connect(address.get(way, str(place.named)))
        speaker.sendall(ATTACK.mark.encode())
        assert soon(lambda: ["network" in trace for trace in place.traces(ATTACK, STUDENT)] == [True])


@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGKILL])
def test_harm_to_a_process_next_door_is_noticed(place: Ground, number: signal.Signals) -> None:
    os.kill(place.victim.pid, number)
    assert soon(lambda: not place.victim_lives)


def test_a_change_of_what_grading_leaves_alone_is_noticed(place: Ground) -> None:
    place.hand_in_untouched("s02")
    before = place.protected()
    submitted = next(place.course.glob("submitted/*/*/*.ipynb"))
    for change in (
        lambda: submitted.write_text("{}"),
        lambda: submitted.chmod(0),
        lambda: os.link(submitted, f"{place.folder}/l"),
    ):
        change()
        after = place.protected()
        assert after != before
        before = after
