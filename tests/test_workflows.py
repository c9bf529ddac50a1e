"""What runs and greets on GitHub: workflows call commands that exist, forms are complete, shown settings work."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from autograder.commands.build import build
from autograder.commands.main import COMMANDS
from autograder.site.launch_links import LaunchSettings, launch_links
from autograder.site_address import site_address

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = [path for path in sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")) if path.name != "config.yml"]
PUBLISHING = (ROOT / "book" / "publishing.md").read_text(encoding="utf-8")


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def steps(path: Path) -> list[dict[str, Any]]:
    return [step for job in read(path)["jobs"].values() for step in job["steps"]]


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PUBLISHING, re.MULTILINE | re.DOTALL)


def test_tests_wait_for_style_and_run_on_two_versions_from_the_oldest_supported_one() -> None:
    job = read(WORKFLOWS[1])["jobs"]["tests"]
    assert job["needs"] == "lint"
    versions = job["strategy"]["matrix"]["python"]
    assert job["strategy"]["matrix"]["part"] == ["test", "test-deep"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert len(versions) >= 2
    assert project["requires-python"] == f">={versions[0]}"


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflow_has_triggers_jobs_and_few_permissions(path: Path) -> None:
    workflow = read(path)
    assert "push" in workflow[True]  # YAML 1.1 reads the key `on` as true
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        assert job["runs-on"]
        assert set(listed(job.get("needs"))) <= set(workflow["jobs"])
    for step in steps(path):
        assert ("run" in step) != ("uses" in step)
        assert re.fullmatch(r"[\w-]+/[\w-]+@v\d+", step.get("uses", "a/b@v1"))


def listed(value: Any) -> list[str]:
    return [] if value is None else [value] if isinstance(value, str) else list(value)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_every_command_of_a_workflow_exists(path: Path) -> None:
    for step in steps(path):
        for line in step.get("run", "").splitlines():
            program, *words = shlex.split(line)
            if program == "make":
                done = subprocess.run(["make", "-n", *words], cwd=ROOT, capture_output=True, text=True, check=False)
                assert done.returncode == 0, done.stderr
            else:
                assert os.access(ROOT / program, os.X_OK), program


def test_pages_get_the_folder_that_a_build_writes() -> None:
    (path,) = (step["with"]["path"] for step in steps(WORKFLOWS[0]) if "upload-pages" in step.get("uses", ""))
    assert path == "book/_build/html"
    done = subprocess.run(
        ["make", "-n", "site", "SITE=--offer 03"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert "tfcourse build --offer 03" in done.stdout


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.name)
def test_form_asks_labelled_questions(path: Path) -> None:
    form = read(path)
    assert form["name"]
    assert form["description"]
    names = [item["id"] for item in form["body"]]
    assert len(names) == len(set(names)) > 1
    for item in form["body"]:
        assert item["type"] in ("input", "textarea")
        assert item["attributes"]["label"]
    assert any(item.get("validations", {}).get("required") for item in form["body"])


def test_page_on_publishing_shows_options_that_exist() -> None:
    options = {name for parameter in build.params for name in parameter.opts}
    lines = [shlex.split(line) for block in blocks("shell") for line in block.splitlines()]
    assert len(lines) == 2
    for program, command, *words in lines:
        assert program == "tfcourse"
        assert command in {name for names in COMMANDS.values() for name in names}
        assert {word for word in words if word.startswith("--")} <= options


def test_settings_of_the_page_are_accepted(tmp_path: Path) -> None:
    address, launch = blocks("yaml")
    (tmp_path / "_config.yml").write_text(address, encoding="utf-8")
    assert site_address(tmp_path) == "https://example.org/course/"
    settings = LaunchSettings.from_config(yaml.safe_load(launch)["sphinx"]["config"]["tfcourse_launch"])
    assert settings is not None
    links = dict(launch_links(settings, "03_scaled_dot_product"))
    assert list(links) == ["Colab", "Binder", "Colab, lesson", "Binder, lesson"]
    assert links["Colab, lesson"].endswith("student/03_scaled_dot_product/03_lesson.ipynb")


def test_files_that_the_page_and_the_templates_name_exist() -> None:
    template = (ROOT / ".github" / "pull_request_template.md").read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"`make ([\w-]+)`", template):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    for name in re.findall(r"`(\.(?:github|ci)/[\w./-]+)`", PUBLISHING):
        assert (ROOT / name).is_file(), name
    assert "CODE_OF_CONDUCT.md" in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
