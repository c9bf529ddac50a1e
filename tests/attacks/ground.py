"""The ground on which attacks are tried: a throwaway course with things worth having, and eyes on what could be taken or left."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from nbgrader.api import Gradebook
from nbgrader.converters import GenerateFeedback
from nbgrader.coursedir import CourseDirectory

from autograder.checks import exercise
from autograder.course.authoring.chapter import find_chapter
from autograder.course.authoring.exercise_source import solution_source, standalone_source
from autograder.course.folder import Course
from autograder.course.release.nbgrader_release import generate_assignment
from autograder.course.release.student_build import build_student_wheel
from tests.corpus.material import mark

from .attack import Attack

ROOT = Path(__file__).parents[2]
CHAPTER = "03_scaled_dot_product"
# The student who is graded first, whose work is worth reading.
OTHER = "s000"
LIGHT = ("causal_mask", "merge_query_key")
GUARDED = ("scaled_dot_product_attention",)
MIXED = ("causal_mask", "scaled_dot_product_attention")
SETUP = "import math\n\nimport torch\nfrom torch import Tensor, nn\n\nfrom tfcourse import check\n"

# Values that are worth reading; each stands in one place only, and in none that belongs to the attacker.
CANARIES = {
    "the gradebook": "canary-gradebook-4417093",
    "another submission": "canary-submission-9120856",
    "the grader's environment": "canary-environment-3306715",
    "the home folder": "canary-home-7781524",
    "the tests": "canary-tests-5540981",
    "earlier results": "canary-results-1093372",
    "the secret seed": "7205759403792793",
}
SEED = int(CANARIES["the secret seed"])
ENVIRONMENT = "TFCOURSE_ATTACKS_TOKEN"

PREAMBLE = """\
# Where everything is: an attacker is assumed to know the machine.
MARK, COURSE, OUTSIDE, HOME = {mark!r}, {course!r}, {outside!r}, {home!r}
TCP, UDP, ABSTRACT, NAMED, VICTIM, OTHER, SELF = {tcp}, {udp}, {abstract!r}, {named!r}, {victim}, {other!r}, {self!r}
CHAPTER = {chapter!r}


def won(what):
    print("W" + "ON", MARK, what)


def spill(*data):
    import re
    for item in data:
        text = item if isinstance(item, str) else bytes(item).decode("utf-8", "replace")
        print(*sorted(set(re.findall("canary-[a-z]+-[0-9]{{7}}", text))))
"""

# What an honest notebook sees of the world it runs in. Nothing of it may depend on who was graded before. The limit on addresses is left
# out: it counts from what the process had mapped when it started, which differs from run to run.
LOOK = """\
import builtins, json, locale, os, random, resource, signal, socket, sys, time
import matplotlib, numpy


def _reaches(port):
    try:
        socket.create_connection(("127.0.0.1", port), 0.5).close()
        return True
    except OSError:
        return False


def _status():
    try:
        lines = open("/proc/self/status").read().splitlines()
    except OSError:
        return {{}}
    return {{a: b.strip() for a, _, b in (line.partition(":") for line in lines) if a in ("Seccomp", "NoNewPrivs", "CapEff")}}


def _mask():
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


print(json.dumps({{
    "walls": {{**_status(), "sees outside": os.path.exists({outside!r}), "reaches a port": _reaches({tcp})}},
    "random": [random.random(), float(numpy.random.rand()), float(torch.rand(()))],
    "time zone": time.tzname, "locale": locale.setlocale(locale.LC_ALL, None), "umask": _mask(), "hash": hash("a word"),
    "environment": sorted(os.environ), "threads": os.environ.get("OMP_NUM_THREADS"), "path": len(sys.path),
    "modules": sorted(name for name in sys.modules if "." not in name), "builtins": sorted(vars(builtins)),
    "dtype": str(torch.get_default_dtype()), "recursion": sys.getrecursionlimit(), "files": sorted(os.listdir(".")),
    "limits": [resource.getrlimit(getattr(resource, name)) for name in sorted(dir(resource))
               if name.startswith("RLIMIT_") and name != "RLIMIT_AS"],
    "figure": matplotlib.rcParams["figure.dpi"], "alarm": str(signal.getsignal(signal.SIGALRM)),
    "whole": [f.__module__ for f in (torch.testing.assert_close, torch.nn.functional.softmax, print, numpy.allclose)],
    "precision": numpy.get_printoptions()["precision"], "float": repr(0.1 + 0.2), "print": [str(torch.tensor(1 / 3))],
}}, sort_keys=True))
"""


@dataclass
class Ground:
    """A course and its surroundings, in a folder of its own.

    Attributes:
        folder: the folder; everything is in it.
        exercises: the chapter's exercises.
        heard: what came in over the network, each message by itself; a connection without a word is ``b""``.
        victim: a process of the grading user that has nothing to do with grading.
        tcp, udp: ports on loopback behind which somebody listens.
    """

    folder: Path
    exercises: tuple[str, ...]
    victim: subprocess.Popen[bytes]
    tcp: int
    udp: int
    heard: list[bytes] = field(default_factory=list)

    @property
    def course(self) -> Path:
        """The course's folder."""
        return self.folder / "course"

    @property
    def outside(self) -> Path:
        """A folder that anybody may write to, and nobody has to."""
        return self.folder / "outside"

    @property
    def home(self) -> Path:
        """The home folder of whoever grades."""
        return self.folder / "home"

    @property
    def abstract(self) -> str:
        """The name of an abstract socket, without its leading zero byte."""
        return f"tfcourse-{self.folder.name}"

    @property
    def named(self) -> Path:
        """The path of a socket."""
        return self.folder / "s"

    def environment(self) -> dict[str, str]:
        """The environment of whoever grades."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "COV"))}
        search = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        scratch = self.folder / "tmp"
        return kept | {
            "HOME": str(self.home),
            ENVIRONMENT: CANARIES["the grader's environment"],
            "PATH": search,
            "TMPDIR": str(scratch),
        }

    def preamble(self, attack: Attack, student: str) -> str:
        """Return what an attacker knows, as the source of a cell."""
        return PREAMBLE.format(
            mark=attack.mark, course=str(self.course), outside=str(self.outside), home=str(self.home), tcp=self.tcp, udp=self.udp,
            abstract=self.abstract, named=str(self.named), victim=self.victim.pid, other=OTHER, self=student, chapter=CHAPTER,
        )  # fmt: skip

    def hand_in_attack(self, student: str, attack: Attack) -> None:
        """Put an attack where a submission goes: the released notebook with the attack in it, and otherwise unwritten."""
        notebook = self._released()
        start = next(i for i, cell in enumerate(notebook.cells) if _name(cell) == "setup") + 1
        preamble = self.preamble(attack, student)
        notebook.cells[start:start] = [new_code_cell(text) for text in (preamble, *attack.cells)]
        for cell in notebook.cells:
            if _name(cell) in attack.solved:
                cell.source = right(_name(cell))
            if _name(cell) in attack.bodies:
                cell.source = attack.bodies[_name(cell)]
        if attack.last:
            notebook.cells.append(new_code_cell(attack.last))
        if attack.edit is not None:
            attack.edit(notebook)
        self._put(student, notebook)

    def hand_in_honest(self, student: str) -> None:
        """Hand in honest work, all of it right, that also looks at the world around it."""
        notebook = self._released()
        for cell in notebook.cells:
            if _name(cell) in self.exercises:
                cell.source = right(_name(cell))
        secret = CANARIES["another submission"]
        notebook.cells.append(
            new_code_cell(f"# {secret}\n" + LOOK.format(outside=str(self.outside), tcp=self.tcp), id="look")
        )
        self._put(student, notebook)

    def hand_in_untouched(self, student: str) -> None:
        """Hand in the released notebook as it is."""
        self._put(student, self._released())

    def _released(self) -> Any:
        return nbformat.read(self.course / "release" / CHAPTER / f"{CHAPTER}.ipynb", as_version=4)

    def _put(self, student: str, notebook: Any) -> None:
        path = self.course / "submitted" / student / CHAPTER / f"{CHAPTER}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(notebook), encoding="utf-8")

    def points(self, name: str) -> float:
        """Return what an exercise is worth."""
        return exercise(name).points

    def scores(self) -> dict[str, float]:
        """Return everybody's points as they stand in the gradebook."""
        with Gradebook(f"sqlite:///{self.course / 'gradebook.db'}", "tfcourse") as gradebook:
            return {
                student.id: sum(
                    grade.auto_score or 0.0
                    for work in student.submissions
                    for notebook in work.notebooks
                    for grade in notebook.grades
                )
                for student in gradebook.students
            }

    def outputs(self, student: str) -> str:
        """Return what a student gets to see of the run: outputs, findings, problems. What the student wrote is not in it."""
        shown = []
        path = self.course / "autograded" / student / CHAPTER / f"{CHAPTER}.ipynb"
        if path.is_file():
            notebook = nbformat.read(path, as_version=4)
            outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
            # A traceback quotes the test cell that failed; that is the runner's doing and no news to anybody.
            shown = [json.dumps({**output, "traceback": []}) for output in outputs]
        result = self.course / "results" / CHAPTER / f"{student}.json"
        if result.is_file():
            # The graders' own file names the seed; it is not given out.
            shown.append(re.sub(r'"seed": \d+', "", result.read_text(encoding="utf-8")))
        return "\n".join(shown)

    def page(self, student: str) -> str:
        """Return what a student is given to read: the feedback page, as the course's configuration has it made."""
        config = Course.open(self.course).config()
        about = CourseDirectory(config=config, assignment_id=CHAPTER, student_id=student)
        GenerateFeedback(coursedir=about, config=config, force=True).start()
        return (self.course / "feedback" / student / CHAPTER / f"{CHAPTER}.html").read_text(encoding="utf-8")

    def look(self, student: str) -> dict[str, Any]:
        """Return what an honest notebook saw."""
        notebook = nbformat.read(self.course / "autograded" / student / CHAPTER / f"{CHAPTER}.ipynb", as_version=4)
        printed = "".join(output.get("text", "") for output in notebook.cells[-1].outputs)
        seen: dict[str, Any] = json.loads(printed) if printed.startswith("{") else {"nothing": printed}
        return seen

    def traces(self, attack: Attack, student: str) -> list[str]:
        """Return what an attack took or left behind, as phrases for the table.

        Processes that it left are ended here, and files that it left outside of the ground are removed.
        """
        shown = self.outputs(student)
        found = [f"reads {place}" for place, value in CANARIES.items() if value in shown]
        found += [f"gets through: {what}" for what in _claims(shown, attack.mark)]
        found += ["leaves a process behind"] if end_processes(attack.mark) else []
        found += [f"leaves files in {place}" for place in self._littered(attack.mark)]
        found += ["is heard on the network"] if any(attack.mark.encode() in word for word in self.heard) else []
        # Last, for what it shows of a submission's text would be taken for something left behind.
        found += ["has its page tell what was asked"] if attack.home and attack.home in self.page(student) else []
        return found

    def _littered(self, mark: str) -> list[str]:
        """Return the places in which something carries a mark in its name."""
        own = {
            "the course": self.course, "a folder of somebody else": self.outside, "the home folder": self.home,
            "the temporary folder": self.folder / "tmp",
        }  # fmt: skip
        shared = {
            "the machine's temporary folder": [Path("/tmp"), Path("/var/tmp")],
            "shared memory": [Path("/dev/shm")],
            "the installed packages": [Path(nbformat.__file__).parents[1]],
            "the root folder": [Path("/")],
        }
        found = [place for place, folder in own.items() if any(_carries(path, mark) for path in _left_in(folder))]
        for place, folders in shared.items():
            left = [path for folder in folders for path in folder.glob(f"*{mark}*")]
            found += [place] if left else []
            for path in left:
                # What lies outside of the ground would otherwise be taken for the next attack's.
                path.unlink()
        return found

    def protected(self) -> dict[str, str]:
        """Describe everything that grading leaves as it is: every name, kind, mode and content."""
        places = ["outside", "home", "course/source", "course/release", "course/submitted", "course/nbgrader_config.py"]
        return {
            str(path.relative_to(self.folder)): _described(path)
            for place in places
            for path in [self.folder / place, *sorted(_below(self.folder / place))]
            # What libraries keep for themselves below a home folder is not the concern here.
            if not {".cache", ".config", ".local", ".jupyter", ".ipython"} & set(path.relative_to(self.folder).parts)
        }

    @property
    def victim_lives(self) -> bool:
        """Whether the process next door is alive and was not stopped."""
        state = Path(f"/proc/{self.victim.pid}/stat").read_text().rpartition(")")[2].split()[0]
        return self.victim.poll() is None and state not in "TtZX"


def _left_in(folder: Path) -> Iterator[Path]:
    """Yield what is in a folder, without the submissions themselves and what nbgrader makes of them.

    Folders may be nested deeper than a path can be long; what lies so deep is not looked at.
    """
    for path in _below(folder):
        if not {"submitted", "autograded"} & set(path.relative_to(folder).parts[:1]):
            yield path


def _below(folder: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(folder):
        if len(Path(place).relative_to(folder).parts) > 12:
            folders.clear()
        yield from (Path(place) / name for name in (*folders, *files))


def _carries(path: Path, mark: str) -> bool:
    """Whether a file carries a mark in its name, or in its text."""
    if mark in path.name or not path.is_file() or path.is_symlink() or path.suffix in (".db", ".json", ".jsonl"):
        return mark in path.name
    return path.stat().st_size < 1_000_000 and mark.encode() in path.read_bytes()


def _described(path: Path) -> str:
    about = path.lstat()
    content = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() and not path.is_symlink() else ""
    return f"{about.st_mode:o} {about.st_nlink if path.is_file() else ''} {content}"


def _name(cell: Any) -> str:
    return str(cell.metadata.get("nbgrader", {}).get("grade_id", ""))


def _claims(shown: str, mark: str) -> list[str]:
    return sorted(set(re.findall(rf"WON {mark} ([\w ,'./:-]+)", shown)))


@cache
def right(name: str) -> str:
    """Return the right solution of an exercise, as a student would write it."""
    return str(standalone_source(exercise(name).reference, rename=name))


def end_processes(mark: str) -> int:
    """End every process that carries a mark in its name, its arguments or its environment, and say how many there were."""
    found = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            about = [(folder / name).read_bytes() for name in ("comm", "cmdline", "environ")]
        except OSError:
            continue
        if int(folder.name) != os.getpid() and any(mark.encode() in text for text in about):
            found += 1
            os.kill(int(folder.name), signal.SIGKILL)
    return found


# ------------------------------------------------------------------------------------------------------- making one


@contextmanager
def ground(exercises: Sequence[str], *, stock: bool = False) -> Iterator[Ground]:
    """Make a ground, and clear it away.

    Args:
        exercises: the exercises of its chapter.
        stock: leave the course's configuration as nbgrader's own, without this project's plugin.
    """
    # A short path, for the sake of the socket's name; not pytest's folder, which keeps the last three runs.
    folder = Path(tempfile.mkdtemp(prefix="tfa-"))
    victim = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100_000)"], start_new_session=True)
    try:
        for name in ("outside", "home/.ssh", "tmp"):
            (folder / name).mkdir(parents=True)
        (folder / "outside").chmod(0o777)
        with _ears(folder) as (heard, tcp, udp):
            made = Ground(folder, tuple(exercises), victim, tcp, udp, heard)
            _furnish(made, stock=stock)
            yield made
    finally:
        # Everything that was started on this ground has its home folder in its environment.
        end_processes(str(folder))
        victim.kill()
        victim.wait()
        for path in [folder, *_below(folder)]:
            if path.is_dir() and not path.is_symlink():
                path.chmod(0o700)
        # Python's own way of removing a folder fails where folders are nested deeper than it may recurse.
        subprocess.run(["rm", "-rf", str(folder)], check=True)


def _furnish(made: Ground, *, stock: bool) -> None:
    """Put a released course there, and a canary into every place worth reading."""
    (made.home / ".ssh" / "id_ed25519").write_text(f"{CANARIES['the home folder']}\n")
    shutil.copytree(_released(made.exercises).name, made.course)
    with Gradebook(f"sqlite:///{made.course / 'gradebook.db'}", "tfcourse") as gradebook:
        gradebook.add_student(OTHER, first_name=CANARIES["the gradebook"])
    seed = made.course / "secret_seed"
    seed.write_text(f"{SEED}\n")
    seed.chmod(0o600)
    results = made.course / "results" / CHAPTER
    results.mkdir(parents=True, exist_ok=True)
    (results / "s99.json").write_text(json.dumps({"note": CANARIES["earlier results"]}))
    if stock:
        (made.course / "nbgrader_config.py").write_text(STOCK_CONFIGURATION)


@cache
def _released(exercises: tuple[str, ...]) -> tempfile.TemporaryDirectory[str]:
    """Return a course in which the chapter is released, to be copied; it goes when Python ends."""
    folder = tempfile.TemporaryDirectory(prefix="tfa-course-")
    course = Course.open(Path(folder.name), create=True)
    source = course.root / "source" / CHAPTER / f"{CHAPTER}.ipynb"
    source.parent.mkdir(parents=True)
    nbformat.write(_source(exercises), source)
    before = os.environ["PATH"]
    # The gradebook calls alembic by its name when it makes a gradebook; it lies beside this Python.
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{before}"
    try:
        generate_assignment(course.config(), CHAPTER)
    finally:
        os.environ["PATH"] = before
    build_student_wheel(ROOT, find_chapter(ROOT, CHAPTER), course.folder("student", chapter=CHAPTER))
    return folder


STOCK_CONFIGURATION = """\
c = get_config()  # noqa: F821
c.CourseDirectory.course_id = "tfcourse"
c.Execute.timeout = 8
c.ExecutePreprocessor.timeout = 8
c.ExecutePreprocessor.startup_timeout = 30
c.ExecutePreprocessor.iopub_timeout = 8
c.Execute.interrupt_on_timeout = True
"""


def _source(exercises: Sequence[str]) -> Any:
    """Return the chapter's source notebook, made as ``tfcourse assign`` makes it."""
    cells = [new_markdown_cell(f"# {CHAPTER}"), new_code_cell(SETUP, metadata=mark("setup", locked=True))]
    for name in exercises:
        about = exercise(name)
        hidden = f"# {CANARIES['the tests']}\ncheck({name}, hidden=True)"
        test = f"check({name})\n### BEGIN HIDDEN TESTS\n{hidden}\n### END HIDDEN TESTS"
        cells += [
            new_code_cell(solution_source(about), metadata=mark(name, solution=True)),
            new_code_cell(test, metadata=mark(f"test_{name}", grade=True, locked=True, points=about.points)),
        ]
    for number, cell in enumerate(cells):
        cell["id"] = f"source-{number}"
    kernel = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
    return new_notebook(cells=cells, metadata={"kernelspec": kernel})


@contextmanager
def _ears(folder: Path) -> Iterator[tuple[list[bytes], int, int]]:
    """Listen on loopback, over TCP, UDP, an abstract and a named socket; what comes in is put into the list."""
    heard: list[bytes] = []
    tcp, udp = socket.socket(), socket.socket(type=socket.SOCK_DGRAM)
    abstract, named = (socket.socket(socket.AF_UNIX) for _ in range(2))
    ears = [tcp, udp, abstract, named]
    tcp.bind(("127.0.0.1", 0))
    udp.bind(("127.0.0.1", 0))
    abstract.bind(f"\0tfcourse-{folder.name}")
    named.bind(str(folder / "s"))
    (folder / "s").chmod(0o777)
    threads = [threading.Thread(target=_listen, args=(ear, heard), daemon=True) for ear in ears]
    for ear in (tcp, abstract, named):
        ear.listen(16)
    for thread in threads:
        thread.start()
    try:
        yield heard, tcp.getsockname()[1], udp.getsockname()[1]
    finally:
        for ear in ears:
            # Closing alone does not wake a thread that waits in accept; nor does a datagram socket know of a shutdown.
            if ear is udp:
                ear.sendto(b"", ear.getsockname())
            else:
                ear.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join()
        for ear in ears:
            ear.close()


def _listen(ear: socket.socket, heard: list[bytes]) -> None:
    while True:
        try:
            if ear.type == socket.SOCK_DGRAM:
                word = ear.recv(65536)
                if not word:
                    return
                heard.append(word)
                continue
            connection, _ = ear.accept()
        except OSError:
            return
        with connection:
            connection.settimeout(2)
            try:
                heard.append(connection.recv(65536))
                # An answer, so that a client that asks for one does not wait.
                connection.sendall(b"HTTP/1.0 204 No Content\r\n\r\n")
            except OSError:
                heard.append(b"")


def exercises_of(family: str) -> tuple[str, ...]:
    """Return the exercises of the chapter on which a family of attacks is tried."""
    return {"forbidden functions": GUARDED, "shortcuts": MIXED}.get(family, LIGHT)
