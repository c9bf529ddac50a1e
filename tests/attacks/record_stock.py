"""Shows what the attacks gain under stock nbgrader: no plugin, no engine of this project, nbgrader's own way of running notebooks.

``python -m tests.attacks.record_stock`` runs every attack that does no harm and writes ``stock.json``; names after it run only those.
The others are never run here, and say why.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from .attack import RECORD, Attack, attacks, told
from .ground import CHAPTER, Ground, end_processes, exercises_of, ground

# One cell may take 5 seconds; a batch of two that takes longer than this hangs.
SECONDS = 75
ATTACKER, HONEST = "s01", "s02"
# What else an attack may do to the others, it does in these families; grading somebody after it takes time.
WITH_COMPANY = ("reading", "files", "processes", "resources", "poisoning")


def observe(attack: Attack) -> dict[str, Any]:
    """Grade an attack, and an honest student after it, with stock nbgrader, and say what came of it."""
    with ground(exercises_of(attack.family), stock=True) as made:
        made.hand_in_attack(ATTACKER, attack)
        company = attack.family in WITH_COMPANY
        if company:
            made.hand_in_honest(HONEST)
        before = made.protected()
        ended = _autograde(made)
        after = made.protected()
        traces = made.traces(attack, ATTACKER)
        traces += [] if made.victim_lives else ["ends a process next door"]
        harmed = {name.split("/")[0] for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
        traces += [f"changes {_PLACES[place]}" for place in sorted(harmed)]
        others = _others(made, attack, ended) if company or not ended else ""
        return {"points": _points(made, attack), "traces": sorted(set(traces)), "others": others}


HANGS = "the batch hangs"
_PLACES = {"course": "files of the course", "outside": "a folder of somebody else", "home": "the home folder"}


def _autograde(made: Ground) -> bool:
    """Run ``nbgrader autograde`` and say whether it came to its end in time."""
    command = [sys.executable, "-m", "nbgrader", "autograde", CHAPTER, "--force"]
    with (made.folder / "stock.log").open("wb") as log:
        grader = subprocess.Popen(
            command, cwd=made.course, env=made.environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            start_new_session=True,
        )  # fmt: skip
        try:
            grader.wait(SECONDS)
            return True
        except subprocess.TimeoutExpired:
            grader.send_signal(signal.SIGKILL)
            grader.wait()
            end_processes(str(made.home))
            return False


def _points(made: Ground, attack: Attack) -> str:
    """Return what the attack gained, in words: beyond what honest work in the same notebook is worth."""
    try:
        got = made.scores().get(ATTACKER)
    except Exception as error:  # the attack may have broken the gradebook itself
        return f"the gradebook cannot be read ({type(error).__name__})"
    if got is None:
        return "no grade"
    honest = sum(made.points(name) for name in attack.solved) + attack.due
    best = sum(made.points(name) for name in made.exercises)
    gained = got - honest
    if gained <= 0:
        return "no points"
    return (
        "full marks" if got == best else f"{got:g} points of {best:g}" if got < best else f"{got:g} points, of {best:g}"
    )


def _others(made: Ground, attack: Attack, ended: bool) -> str:
    if not ended:
        return HANGS
    try:
        score = made.scores().get(HONEST)
    except Exception:
        return ""
    if score is None or not (made.course / "autograded" / HONEST).is_dir():
        return "who comes after it has no grade"
    if score != sum(made.points(name) for name in made.exercises):
        return "who comes after it is graded otherwise"
    seen = json.dumps(made.look(HONEST))
    if attack.mark in seen or '"figure": 17' in seen:
        return "who comes after it runs its code or its settings"
    return ""


def main(names: list[str]) -> None:
    """Observe attacks and write down what was seen, in the order of the table."""
    harmless = [attack for attack in attacks() if not attack.unsafe]
    for attack in harmless:
        if not names or attack.name in names or attack.family in names:
            seen = observe(attack)
            print(f"{attack.family}: {attack.name}: {told(seen)}", flush=True)
            # Read anew each time, so that another run beside this one keeps what it has found.
            known = {**_known(), attack.name: seen}
            _write({item.name: known[item.name] for item in harmless if item.name in known})


def _known() -> dict[str, Any]:
    return dict(json.loads(RECORD.read_text(encoding="utf-8"))["attacks"]) if RECORD.is_file() else {}


def _write(found: dict[str, Any]) -> None:
    about = "What each attack gains under stock nbgrader; made by `python -m tests.attacks.record_stock`. Do not edit."
    text = json.dumps({"about": about, "attacks": found}, indent=1, ensure_ascii=False)
    draft = Path(f"{RECORD}.{os.getpid()}")
    draft.write_text(f"{text}\n", encoding="utf-8")
    draft.replace(RECORD)


if __name__ == "__main__":
    main(sys.argv[1:])
