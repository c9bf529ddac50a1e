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
        name="a transformer of syntax trees",
        story="Installs a transformer that replaces every call of check by a number.",
        wants="full marks without a check",
        cells=(
            SHELL
            + code("""
                import ast
                class Points(ast.NodeTransformer):
                    def visit_Call(self, node):
                        if getattr(node.func, "id", "") == "check":
                            return ast.copy_location(ast.Constant(4.0), node)
                        return self.generic_visit(node)
                ip.ast_transformers.append(Points())
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
        name="run_cell replaced",
        story="Replaces the shell's run_cell and run_cell_async, so that test cells come out as their points.",
        wants="full marks without a check",
        cells=(
            SHELL
            + code("""
                run, later = ip.run_cell, ip.run_cell_async
                ip.run_cell = lambda text, *a, **k: run("4.0" if "check(" in text else text, *a, **k)
                def late(text, *a, **k):
                    text = "4.0" if "check(" in text else text
                    return later(text, *a, **{**k, "transformed_cell": ip.transform_cell(text)})
                ip.run_cell_async = late
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
        name="an event before every cell",
        story="Registers for the event before each cell, and puts a check of its own in place again and again.",
        wants="full marks without a check",
        cells=(
            SHELL
            + code("""
                def again(info=None):
                    ip.user_ns["check"] = lambda candidate, **options: 4.0
                    import tfcourse
                    tfcourse.check = ip.user_ns["check"]
                ip.events.register("pre_run_cell", again)
                ip.events.register("pre_execute", again)
            """),
        ),
    ),
    Attack(
        name="an event after every cell",
        story="Registers for the event after each cell, and displays the points as a further result.",
        wants="full marks from the second result",
        cells=(
            SHELL
            + code("""
                def after(result=None):
                    ip.displayhook(4.0)
                ip.events.register("post_run_cell", after)
                ip.events.register("post_execute", after)
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
    Attack(
        name="compiling something else",
        story="Replaces the compiler of cells, so that the text of a test cell is not what runs.",
        wants="full marks without a check",
        cells=(
            SHELL
            + code("""
                import ast, builtins
                parse = ip.compile.ast_parse
                ip.compile.ast_parse = lambda text, *a, **k: parse("4.0" if "check(" in text else text, *a, **k)
                real = builtins.compile
                builtins.compile = lambda text, *a, **k: real("4.0" if isinstance(text, str) and "check(" in text else text, *a, **k)
            """),
        ),
    ),
    Attack(
        name="magics and macros",
        story="Defines aliases, macros and automatic calls that take hold of lines beginning with check.",
        wants="full marks without a check",
        cells=(
            SHELL
            + code("""
                ip.run_line_magic("autocall", "2")
                ip.register_magic_function(lambda line, cell=None: 4.0, "line_cell", "check")
                ip.prefilter_manager.prefilter_lines = lambda lines, *a: "4.0" if "check(" in lines else lines
                ip.prefilter_manager.multi_line_specials = True
                ip.define_macro("check", "4.0")
            """),
        ),
    ),
)
