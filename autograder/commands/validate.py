"""Run ``tfcourse validate``."""

from __future__ import annotations

from pathlib import Path

import click

from autograder.commands.console import EXIT_FAILED, CommandResult, command
from autograder.errors import CourseError


@click.command()
@click.argument("notebook", type=click.Path(path_type=Path))
@command
def validate(notebook: Path) -> CommandResult:
    """Check a notebook before it is handed in.

    The command runs the notebook from the top, with the visible tests of the grader.

    Example:
      tfcourse validate 03_scaled_dot_product.ipynb
    """
    from autograder.checking.validate import NotebookError, describe_validation
    from autograder.checking.validate import validate as validate_notebook

    try:
        validation = validate_notebook(notebook)
    except NotebookError as error:
        raise CourseError(str(error)) from error
    return CommandResult(validation.to_dict(), describe_validation(validation), 0 if validation.passed else EXIT_FAILED)
