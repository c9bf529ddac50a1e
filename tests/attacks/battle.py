"""Grades a class of attackers in a process of its own, for an attack that gets out may end whoever grades.

Run as ``python -m tests.attacks.battle COURSE``; writes ``battle.jsonl`` beside the course, a line per submission as it comes in.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

from autograder.course.folder import Course
from autograder.engine.settings import GradingSettings
from autograder.grading.autograde import autograde
from autograder.grading.course_settings import configured_settings
from autograder.grading.record.results import GradeResult

from .attack import Attack
from .ground import CHAPTER, ROOT, SEED, Ground

# Short, so that a limit that is broken costs the tests little; the same kinds of limits as in a real course.
LIMITS: dict[str, Any] = {
    "exercise_seconds": 2,
    "exercise_cpu_seconds": 2,
    "cell_seconds": 2,
    "submission_seconds": 30,
    "submission_cpu_seconds": 30,
    "memory_mb": 2048,
    "scratch_mb": 64,
    "flood_output": 5_000_000,
    "answers_mb": 16,
}
# What a submission may take in all before the batch counts as hung: its own limit, and what the grader does around it.
PATIENCE = 60
# Every so many attackers an honest student comes, whose grade must not suffer.
COMPANY = 5


@dataclass
class Battle:
    """A class that was graded, and what was seen of it.

    Attributes:
        fighters: the attacks by their students' ids.
        honest: the ids of honest students, in the order in which they were graded.
        untouched: the id of the student who handed in the released notebook as it is.
        results: what came of each submission.
        ended: whether the batch came to its end by itself.
        said: how it ended, and the grader's last words.
        held_back: names of attacks that were not let loose, because nothing would have held them.
        before: everything that grading leaves as it is, before it.
        after: the same afterwards.
        traces: what each attack took or left behind, by student.
        scores: everybody's points as they stand in the gradebook.
        looks: what the honest students saw of the world, by student.
        heard: everything that came in over the network.
        victim_lives: whether the process next door is unharmed.
    """

    fighters: dict[str, Attack] = field(default_factory=dict)
    honest: list[str] = field(default_factory=list)
    untouched: str = ""
    results: dict[str, GradeResult] = field(default_factory=dict)
    ended: bool = False
    said: str = ""
    held_back: frozenset[str] = frozenset()
    before: dict[str, str] = field(default_factory=dict)
    after: dict[str, str] = field(default_factory=dict)
    traces: dict[str, list[str]] = field(default_factory=dict)
    scores: dict[str, float] = field(default_factory=dict)
    looks: dict[str, dict[str, Any]] = field(default_factory=dict)
    heard: list[bytes] = field(default_factory=list)
    victim_lives: bool = False

    def student(self, attack: Attack) -> str:
        """Return the id under which an attack was handed in."""
        return next(student for student, fighter in self.fighters.items() if fighter.name == attack.name)


def fight(ground: Ground, attacks: tuple[Attack, ...], *, walls: bool) -> Battle:
    """Hand in attacks among honest work, grade them all, and look at what is left of the ground.

    Args:
        ground: where; nothing may have been handed in on it.
        attacks: the attacks.
        walls: whether the engine was seen to shut submissions in. Without that, attacks that could do harm are held back.
    """
    let_loose = [attack for attack in attacks if walls or not attack.unsafe]
    battle = Battle(held_back=frozenset(attack.name for attack in attacks if attack not in let_loose))
    _line_up(battle, ground, let_loose)
    battle.before = ground.protected()
    battle.ended, battle.said = _grade(ground, PATIENCE * (len(let_loose) + 3), weaker=not walls)
    battle.after = ground.protected()
    battle.victim_lives = ground.victim_lives
    for line in _lines(ground.folder / "battle.jsonl"):
        result = GradeResult.from_dict(line)
        battle.results[result.student] = result
    battle.traces = {student: ground.traces(attack, student) for student, attack in battle.fighters.items()}
    battle.looks = {student: ground.look(student) for student in battle.honest if student in battle.results}
    battle.scores, battle.heard = ground.scores(), list(ground.heard)
    return battle


def _line_up(battle: Battle, ground: Ground, attacks: list[Attack]) -> None:
    """Hand everything in; students are graded in the order of their ids."""
    ids = (f"s{number:03d}" for number in count())
    for number, attack in enumerate(attacks):
        if number % COMPANY == 0:
            battle.honest.append(next(ids))
        battle.fighters[next(ids)] = attack
    battle.honest.append(next(ids))
    battle.untouched = next(ids)
    for student, attack in battle.fighters.items():
        ground.hand_in_attack(student, attack)
    for student in battle.honest:
        ground.hand_in_honest(student)
    ground.hand_in_untouched(battle.untouched)


def _grade(ground: Ground, seconds: float, *, weaker: bool) -> tuple[bool, str]:
    """Run the grader and say whether it ended by itself, and what it said."""
    command = [sys.executable, "-m", "tests.attacks.battle", str(ground.course), *(["--weaker"] if weaker else [])]
    with (ground.folder / "battle.log").open("wb") as log:
        grader = subprocess.Popen(
            command, cwd=ROOT, env=ground.environment(), stdout=log, stderr=log, start_new_session=True
        )
        try:
            code = grader.wait(seconds)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            _end_group(grader)
    said = (ground.folder / "battle.log").read_text(encoding="utf-8", errors="replace")[-2000:]
    return code == 0, f"exit {code}: {said}" if code is not None else f"not ended after {seconds} s: {said}"


def _end_group(grader: subprocess.Popen[bytes]) -> None:
    """End what is left of the grader: its own session, in which nobody else is."""
    with suppress(ProcessLookupError):
        os.killpg(grader.pid, signal.SIGKILL)
    grader.wait()


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.is_file() else []


def settings_of(course: Course, *, weaker: bool) -> GradingSettings:
    """Return the course's settings with short limits."""
    return replace(configured_settings(course), **LIMITS, seed=SEED, allow_weaker=weaker)


def main(folder: str, *, weaker: bool) -> None:
    """Grade a course's chapter, and write each result down as it comes in."""
    course = Course.open(Path(folder))
    with (Path(folder).parent / "battle.jsonl").open("a", encoding="utf-8") as lines:

        def note(result: GradeResult) -> None:
            lines.write(json.dumps(result.to_dict()) + "\n")
            lines.flush()

        autograde(course, CHAPTER, jobs=1, device="cpu", progress=note, settings=settings_of(course, weaker=weaker))


if __name__ == "__main__":
    main(sys.argv[1], weaker="--weaker" in sys.argv[2:])
