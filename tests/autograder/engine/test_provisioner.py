"""Warm, sandboxed kernels for whoever runs notebooks through Jupyter, which knows nothing of it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.manager import KernelManager, start_new_kernel
from nbclient import NotebookClient
from nbclient.exceptions import DeadKernelError
from nbformat.v4 import new_code_cell, new_notebook
from nbgrader.preprocessors import Execute
from nbgrader.utils import determine_grade

from autograder.engine.jupyter import provisioner
from autograder.engine.jupyter.provisioner import WarmProvisioner
from autograder.engine.sandbox.lockdown import LAYERS, SOCKETS

SECONDS = 60


@pytest.fixture(scope="module", autouse=True)
def _kernelspecs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Kernelspecs in a folder of these tests' own; the zygotes that they have started end with the module."""
    folder = tmp_path_factory.mktemp("jupyter")
    for name, engine in (
        ("warm", {"limits": {"memory_mb": 1024, "processes": 40}, "seed": 5}),
        ("odd", {"isolaton": "none"}),
    ):
        spec = folder / "kernels" / name / "kernel.json"
        spec.parent.mkdir(parents=True)
        chosen = {"provisioner_name": "tfcourse-warm", "config": {}}
        metadata = {"kernel_provisioner": chosen, "engine": engine}
        argv = ["python", "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        spec.write_text(json.dumps({"argv": argv, "display_name": name, "language": "python", "metadata": metadata}))
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("JUPYTER_PATH", str(folder))
        patched.setenv("JUPYTER_RUNTIME_DIR", str(folder / "runtime"))
        patched.setattr(provisioner, "_zygotes", {})
        yield
        for zygote in provisioner._zygotes.values():
            folder = Path(zygote.sockets)
            zygote.close()
            assert not folder.exists()


def run(*sources: str, **options: Any) -> Any:
    """Run cells as nbclient does."""
    made = new_notebook(cells=[new_code_cell(source) for source in sources])
    NotebookClient(made, **{"kernel_name": "warm", "timeout": SECONDS, **options}).execute()
    return made


def text(cell: Any) -> str:
    return "".join(output.get("text", "") for output in cell.outputs)


class Kernel:
    """A kernel to ask more than once."""

    def __init__(self) -> None:
        self.manager: KernelManager
        self.manager, self.client = start_new_kernel(kernel_name="warm")

    def ask(self, source: str) -> str:
        """Run code and return what it prints."""
        said: list[str] = []

        def take(message: Any) -> None:
            said.append(message["content"].get("text") or message["content"].get("ename") or "")

        self.client.execute_interactive(source, timeout=SECONDS, output_hook=take)
        return "".join(said)

    def close(self) -> None:
        """End it."""
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)


@pytest.fixture
def kernels() -> Iterator[list[Kernel]]:
    """A list; kernels that are put into it end with the test."""
    made: list[Kernel] = []
    yield made
    for kernel in made:
        kernel.close()


def test_the_provisioner_is_found_by_its_name() -> None:
    (found,) = entry_points(group="jupyter_client.kernel_provisioners", name="tfcourse-warm")
    assert found.load() is WarmProvisioner


def test_a_notebook_runs_and_what_notebooks_need_is_there_before_they_ask() -> None:
    made = run(
        "import sys\nprint('torch' in sys.modules, 'matplotlib.pyplot' in sys.modules)",
        "import torch\nx = torch.ones(2)\nx.sum()",
        "%matplotlib inline\nimport matplotlib.pyplot as plt\nplt.plot([1, 2]);",
        "x.undefined",
        allow_errors=True,
    )
    known, result, figure, error = made.cells
    assert text(known) == "True True\n"
    assert result.outputs[0].data["text/plain"] == "tensor(2.)"
    assert [output.data["image/png"][:5] for output in figure.outputs if output.output_type == "display_data"] == [
        "iVBOR"
    ]
    assert error.outputs[0].ename == "AttributeError"
    assert [cell.execution_count for cell in made.cells] == [1, 2, 3, 4]


def test_a_kernel_is_locked_in(kernels: list[Kernel]) -> None:
    kernels.append(Kernel())
    (kernel,) = kernels
    provisioner_of: Any = kernel.manager.provisioner
    assert provisioner_of.layers == LAYERS
    assert "not supported" in kernel.ask(
        "import socket\ntry:\n    socket.socket()\nexcept OSError as error:\n    print(error)"
    )
    assert kernel.ask(f"open({str(Path(__file__))!r})") == "FileNotFoundError"
    assert kernel.ask("import autograder.checks") == "ModuleNotFoundError"
    assert kernel.ask("import os\nprint(os.getuid(), os.listdir('.'))").startswith("1000 ")


def test_a_kernel_does_not_see_the_sockets_of_another(kernels: list[Kernel]) -> None:
    kernels += [Kernel(), Kernel()]
    for kernel in kernels:
        sockets = set(kernel.ask(f"import os\nprint(*os.listdir({SOCKETS!r}))").split())
        assert sockets == {f"k-{number}" for number in range(1, 6)}
    kernels[0].ask(f"open('{SOCKETS}/mine', 'w').close(); open('/tmp/mine', 'w').close()")
    assert kernels[1].ask(f"print(os.path.exists('{SOCKETS}/mine'), os.path.exists('/tmp/mine'))") == "False False\n"
    assert kernels[0].manager.ip != kernels[1].manager.ip


def test_a_cell_that_takes_too_long_is_interrupted_and_the_next_one_runs() -> None:
    made = run(
        "import time\nx = 5",
        "time.sleep(1000)",
        "print(x)",
        timeout=2,
        interrupt_on_timeout=True,
        allow_errors=True,
    )
    assert [output.ename for output in made.cells[1].outputs if output.output_type == "error"] == ["KeyboardInterrupt"]
    assert text(made.cells[2]) == "5\n"


def test_a_kernel_that_dies_is_said_to_have_died_and_is_gone() -> None:
    with pytest.raises(DeadKernelError):
        run("import os\nos._exit(3)", "1")
    # The first one has made the zygote's connection and what Jupyter keeps.
    with contextlib.suppress(DeadKernelError):
        run("import ctypes\nctypes.string_at(0)", "1")
    after = _open_files()
    with contextlib.suppress(DeadKernelError):
        run("import os, signal\nos._exit(0)", "1")
    assert _open_files() <= after
    (zygote,) = (zygote for zygote in provisioner._zygotes.values() if zygote._ready)
    assert zygote._process is not None
    assert run("print(1)").cells[0].outputs[0].text == "1\n"


def _open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_a_kernel_that_is_restarted_has_forgotten_everything_and_works(kernels: list[Kernel]) -> None:
    kernels.append(Kernel())
    (kernel,) = kernels
    kernel.ask("x = 1\nopen('left', 'w').close()")
    process = kernel.manager.provisioner._child._pid  # type: ignore[union-attr]
    kernel.manager.restart_kernel(now=True)
    kernel.client.stop_channels()
    kernel.client = kernel.manager.client()
    kernel.client.start_channels()
    kernel.client.wait_for_ready(timeout=SECONDS)
    assert kernel.manager.provisioner._child._pid != process  # type: ignore[union-attr]
    assert kernel.ask("import os\nprint('x' in globals(), os.path.exists('left'))") == "False False\n"
    assert kernel.manager.is_alive()


def test_an_end_is_noticed_and_asked_for(kernels: list[Kernel]) -> None:
    kernels.append(Kernel())
    (kernel,) = kernels
    assert kernel.manager.is_alive()
    kernel.manager.shutdown_kernel(now=True)
    assert not kernel.manager.is_alive()


def test_limits_and_seed_are_those_of_the_kernelspec() -> None:
    made = run(
        "import resource, torch\nprint(resource.getrlimit(resource.RLIMIT_NPROC)[0], torch.initial_seed())",
        "x = bytearray(500 * 2**20)\ndel x",
        "x = bytearray(1100 * 2**20)",
        allow_errors=True,
    )
    assert text(made.cells[0]) == "40 5\n"
    assert made.cells[1].outputs == []
    assert made.cells[2].outputs[0].ename == "MemoryError"


def test_kernels_of_one_kernelspec_come_from_one_zygote() -> None:
    run("1")
    before = {id(zygote): zygote._process for zygote in provisioner._zygotes.values()}
    run("1")
    assert {id(zygote): zygote._process for zygote in provisioner._zygotes.values()} == before


def test_a_name_that_is_no_setting_is_said() -> None:
    with pytest.raises(TypeError, match="isolaton"):
        run("1", kernel_name="odd")


def test_nbgraders_own_execution_uses_the_kernel_that_a_notebook_names(tmp_path: Path) -> None:
    mark = {"grade": True, "locked": True, "solution": False, "points": 2.0, "grade_id": "t", "schema_version": 3}
    made = new_notebook(
        cells=[
            new_code_cell("import socket\ndef f(): return socket.socket()"),
            new_code_cell("try:\n    f()\nexcept OSError:\n    print('shut in')", metadata={"nbgrader": mark}),
            new_code_cell("assert False", metadata={"nbgrader": mark | {"grade_id": "u"}}),
        ],
        metadata={"kernelspec": {"name": "warm", "display_name": "warm", "language": "python"}},
    )
    Execute().preprocess(made, {"metadata": {"path": str(tmp_path)}})
    assert text(made.cells[1]) == "shut in\n"
    assert [determine_grade(cell)[0] for cell in made.cells[1:]] == [2, 0]
