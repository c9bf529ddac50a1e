"""Attacks that change the shell which runs the test cells."""

from __future__ import annotations

from ..attack import Attack, code

SHELL = "ip = get_ipython()\n"

ATTACKS = (
    Attack(
        name="an input transformer",
        story="Installs an input transformer that replaces the text of every later test cell by its points.",
        wants="full marks without a check",
        cells=(
            SHELL
            + code("""
                def points(lines):
                    return ["4.0\\n"] if any("check(" in line for line in lines) else lines
                ip.input_transformers_cleanup.append(points)
                ip.input_transformers_post.append(points)
            """),
        ),
    ),
    Attack(
        name="do_execute replaced",
        story="Replaces the kernel's do_execute, so that test cells come out as their points.",
        wants="full marks without a check",
        cells=(
            SHELL
            + code("""
                kernel = ip.kernel
                run = kernel.do_execute
                async def do_execute(code, *a, **k):
                    return await run("4.0" if "check(" in code else code, *a, **k)
                kernel.do_execute = do_execute
            """),
        ),
    ),
    Attack(
        name="the display hook replaced",
        story="Makes the formatters and the display hook show every result as the full points.",
        wants="full marks on paper",
        cells=(
            SHELL
            + code("""
                import sys
                ip.display_formatter.format = lambda value, *a, **k: ({"text/plain": "4.0"}, {})
                ip.displayhook.compute_format_data = lambda value: ({"text/plain": "4.0"}, {})
                ip.display_formatter.formatters["text/plain"].for_type(object, lambda value, printer, cycle: printer.text("4.0"))
            """),
        ),
        bodies={name: f"def {name}(*a, **k):\n    return None\n" for name in ("causal_mask", "merge_query_key")},
    ),
    Attack(
        name="last words",
        story="Registers functions for the end of the process that write points to wherever results go.",
        wants="full marks after the end",
        cells=(
            SHELL
            + code("""
                import atexit, sys
                def words():
                    content = dict(execution_count=1, metadata={}, data={"text/plain": "4.0"})
                    ip.kernel.session.send(ip.kernel.iopub_socket, "execute_result", content)
                    open(OUTSIDE + "/" + MARK, "w").write("4.0")
                atexit.register(words)
            """),
        ),
        bodies={"causal_mask": "def causal_mask(*a, **k):\n    import sys\n    sys.exit(0)\n"},
    ),
    Attack(
        name="a trace on every line",
        story="Sets trace and profile functions that change what the checking engine decides while it runs.",
        wants="full marks from a verdict changed in flight",
        bodies={name: f"def {name}(*a, **k):\n    return None\n" for name in ("causal_mask", "merge_query_key")},
        cells=(
            code("""
                import ctypes, sys, threading
                def trace(frame, event, argument):
                    if frame.f_code.co_name == "_verdict" and "problems" in frame.f_locals:
                        problems = frame.f_locals["problems"]
                        if isinstance(problems, list):
                            problems[:] = [None] * len(problems)
                    return trace
                sys.settrace(trace)
                threading.settrace(trace)
            """),
        ),
    ),
    Attack(
        name="a namespace that answers",
        story="Makes the notebook's namespace find another check than the one that was imported, through the module of built-ins.",
        wants="full marks without a check",
        cells=(
            SHELL
            + code("""
                import builtins
                fake = lambda candidate, **options: 4.0
                builtins.check = fake
                ip.user_global_ns["check"] = fake
                ip.user_ns_hidden["check"] = fake
                del check
            """),
        ),
    ),
)
