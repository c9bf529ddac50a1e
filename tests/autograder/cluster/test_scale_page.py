"""The examples of docs/scale.md, taken from the page: as right as they can be found to be without a SLURM or a Kubernetes."""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.config
import pytest
import yaml
from dask_jobqueue.slurm import SLURMJob
from distributed.cli.dask_scheduler import main as dask_scheduler
from distributed.cli.dask_worker import main as dask_worker
from distributed.security import Security

from autograder.engine.sandbox.lockdown import LAYERS

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
COMMANDS = {"worker": dask_worker, "scheduler": dask_scheduler}


def examples(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def options_of(command: str) -> dict[str, Any]:
    """Return what Dask's own command line makes of a command."""
    _, kind, *arguments = shlex.split(command)
    return dict(COMMANDS[kind].make_context(kind, arguments, resilient_parsing=False).params)


def documents() -> dict[str, Any]:
    [text] = [text for text in examples("yaml") if "apiVersion" in text]
    return {document["kind"]: document for document in yaml.safe_load_all(text)}


def known_setting(path: tuple[str, ...]) -> bool:
    missing = object()
    return dask.config.get(".".join(path), default=missing) is not missing


def leaves(tree: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    if not isinstance(tree, dict):
        return [path]
    return [leaf for name, branch in tree.items() for leaf in leaves(branch, (*path, name))]


@pytest.fixture(scope="module")
def capacity(benchmark_script: Callable[[str], Any]) -> Any:
    """The program that writes the table."""
    return benchmark_script("capacity")


def test_every_setting_in_the_configuration_is_one_that_dask_has() -> None:
    [text] = [text for text in examples("yaml") if "apiVersion" not in text]
    paths = leaves(yaml.safe_load(text))
    assert ("distributed", "comm", "tls", "client", "key") in paths
    assert [path for path in paths if not known_setting(path)] == []


def test_every_variable_in_the_pods_is_a_setting_that_dask_has() -> None:
    told = dask.config.collect_env(documents()["ConfigMap"]["data"])
    names = [tuple(part.replace("_", "-") for part in path) for path in leaves(told)]
    assert len(names) == 10
    assert [name for name in names if not known_setting(name)] == []
    assert told["distributed"]["scheduler"]["http"]["routes"] == ["distributed.http.health"]


@pytest.mark.parametrize("command", re.findall(r"^dask worker .*$|(?<=`)dask scheduler [^`]+", PAGE, re.MULTILINE))
def test_commands_have_options_that_dask_has(command: str) -> None:
    options = options_of(command)
    if command.startswith("dask worker"):
        assert options["nthreads"] == 1


@pytest.mark.parametrize("part", ["worker", "scheduler"])
def test_containers_start_with_options_that_dask_has(part: str) -> None:
    [container] = documents()["DaskCluster"]["spec"][part]["spec"]["containers"]
    options = options_of(shlex.join(container["args"]))
    assert options.get("nthreads", 1) == 1
    mounted = {mount["mountPath"] for mount in container["volumeMounts"]}
    files = [value for value in documents()["ConfigMap"]["data"].values() if value.endswith(".pem")]
    assert {str(Path(file).parent) for file in files} <= mounted


def test_the_parts_of_the_cluster_find_each_other() -> None:
    found = documents()
    spec = found["DaskCluster"]["spec"]
    address = spec["worker"]["spec"]["containers"][0]["args"][2]
    grader = found["Job"]["spec"]["template"]
    [arguments] = [container["args"] for container in grader["spec"]["containers"]]
    assert f"--scheduler={address}" in arguments
    [port] = [port for port in spec["scheduler"]["service"]["ports"] if port["name"] == "tcp-comm"]
    assert address == f"tls://{found['DaskCluster']['metadata']['name']}-scheduler.grading.svc:{port['port']}"
    labels = [source["podSelector"]["matchLabels"] for source in found["NetworkPolicy"]["spec"]["ingress"][0]["from"]]
    assert grader["metadata"]["labels"] in labels
    pod = spec["worker"]["spec"]
    assert (pod["hostUsers"], pod["containers"][0]["securityContext"]["procMount"]) == (False, "Unmasked")
    assert "privileged" not in pod["containers"][0]["securityContext"]
    volumes = {volume["name"] for volume in grader["spec"]["volumes"]}
    assert {mount["name"] for mount in grader["spec"]["containers"][0]["volumeMounts"]} == volumes


def test_the_slurm_script_starts_one_worker_a_core(tmp_path: Path) -> None:
    [script] = [text for text in examples("python") if "SLURMCluster" in text]
    [call] = [node for node in ast.walk(ast.parse(script)) if _calls(node, "SLURMCluster")]
    assert isinstance(call, ast.Call)
    asked = {word.arg: ast.literal_eval(word.value) for word in call.keywords if word.arg != "security"}
    assert asked.pop("scheduler_options")["port"] == 8786
    (pem := tmp_path / "one.pem").touch()
    files = {f"tls_{name}": str(pem) for name in ("ca_file", "worker_cert", "worker_key")}
    certificate = Security(require_encryption=True, **files)
    job = SLURMJob(scheduler="tls://10.0.0.1:8786", name="grading", security=certificate, **asked).job_script()
    command = next(line for line in job.splitlines() if "dask_worker" in line)
    _, _, started = command.partition("dask_worker ")
    options = options_of(f"dask worker {started}")
    assert (options["nthreads"], str(options["n_workers"])) == (1, "16")
    assert options["tls_key"] == str(pem)
    assert "#SBATCH --cpus-per-task=16" in job
    assert "#SBATCH -t 04:00:00" in job
    assert subprocess.run(["bash", "-n"], input=job, text=True, check=False).returncode == 0


def _calls(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name


def test_the_shell_examples_and_the_python_ones_can_be_read_and_layers_are_layers() -> None:
    for text in examples("bash"):
        assert subprocess.run(["bash", "-n"], input=text, text=True, check=False).returncode == 0, text
    for text in examples("python"):
        ast.parse(text)
    table = PAGE[PAGE.index("| what is in the way") : PAGE.index("Our own filter")]
    assert set() < set(re.findall(r"\*([a-z ]+)\*", table)) <= set(LAYERS)


def test_the_table_of_100000_submissions_is_that_of_the_committed_times(capacity: Any) -> None:
    assert capacity.written(PAGE, capacity.table(capacity.read_times())) == PAGE


def test_a_simulated_batch_is_as_fast_as_its_bottleneck(capacity: Any) -> None:
    plain = {"about": {}, "feedback": 0.0, "start": 0.0, "sent": 1, "returned": 1, "gradebook": 1, "files": 1}
    times = capacity.Times(service=[1.0], prepare=[0.02], record=[0.03], **plain)
    few, many = capacity.simulate(times, 4, 2000), capacity.simulate(times, 64, 2000)
    assert few.seconds == pytest.approx(500, rel=0.02)  # four at a time, one second each
    assert many.seconds == pytest.approx(100, rel=0.02)  # 0.05 seconds of the one writer each
    assert times.enough_workers == pytest.approx(20)
    assert many.writer_share > 0.98 > few.writer_share


def test_the_committed_times_are_measured_ones_and_the_same_seed_gives_the_same_batch(capacity: Any) -> None:
    times = capacity.read_times()
    assert len(set(times.service)) > 10
    once, again, other = (capacity.simulate(times, 8, 500, seed) for seed in (1, 1, 2))
    assert once == again != other
