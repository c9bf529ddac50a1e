"""The tests of an accelerator do not vanish: without a compiler they say what to install, and a process that dies fails each of them."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest

from . import own_process
from .build import operations_without_check


@pytest.mark.parametrize(("ci", "kind"), [("", pytest.skip), ("true", pytest.fail)])
def test_without_a_compiler_they_name_what_installs_one_and_fail_in_continuous_integration(
    monkeypatch: pytest.MonkeyPatch, ci: str, kind: Any
) -> None:
    monkeypatch.setenv("CI", ci)
    with pytest.raises(kind.Exception, match=r"apt-get install g\+\+"):
        own_process.missing_compiler()


def test_a_process_that_dies_fails_its_tests(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    died = subprocess.CompletedProcess([], -11, "", "Fatal Python error: Segmentation fault")
    monkeypatch.setattr(own_process.subprocess, "run", lambda *arguments, **named: died)
    monkeypatch.setattr(own_process, "built", lambda: "/nowhere")
    item = request.node
    item.add_marker("cuda")
    elsewhere = own_process.Elsewhere()
    elsewhere._run([item])
    (report,) = elsewhere._reports[item.nodeid]
    assert report.failed
    assert "ended with -11" in str(report.longrepr)
    assert "Segmentation fault" in str(report.longrepr)


def test_pytorchs_table_says_which_operations_look_at_devices_themselves() -> None:
    names = set(operations_without_check())
    assert {"add.Tensor", "index.Tensor", "where.self", "masked_fill_.Scalar"} <= names
    assert {"mm", "bmm", "gather", "cat", "native_layer_norm"}.isdisjoint(names)
