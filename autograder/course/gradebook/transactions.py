"""Share one gradebook connection among nbgrader's steps, and commit each submission in one transaction.

Opening a gradebook is slower than any query of a step: it creates an engine, and inspects every table and the course. The steps of nbgrader
open their gradebook by the name ``Gradebook`` in their module; :func:`with_shared_gradebook` puts another class under that name.

nbgrader's own converter writes the gradebook, since late penalties, comments and missing files are nbgrader's; the slow part was opening
the database at every step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache, partial
from types import FunctionType
from typing import Any, Self

from nbgrader.api import (
    Assignment,
    BaseCell,
    Comment,
    Grade,
    Gradebook,
    GradeCell,
    Notebook,
    SolutionCell,
    SourceCell,
    SubmittedAssignment,
    SubmittedNotebook,
    TaskCell,
)
from sqlalchemy import Column, Select, bindparam, create_engine, inspect, select
from sqlalchemy.orm import Session, scoped_session, sessionmaker
from traitlets.utils.importstring import import_item

_NAME = "Gradebook"


class _Unit(Session):  # type: ignore[misc]
    """A session whose commits take effect together, when the gradebook is closed.

    nbgrader commits after every cell, and a commit waits for the disk. Here what belongs together is written at once, all or none.
    """

    commit_requested = failed = False

    def commit(self) -> None:
        """Mark the changes so far for the commit."""
        if self.new or self.deleted or any(self.is_modified(row) for row in self._others()):
            self.flush()
        self.commit_requested = True
        for row in self._others():
            # As after any commit: what is counted from other rows, such as a notebook's score, is asked for anew.
            if counted := _counted(row.__class__) & row.__dict__.keys():
                self.expire(row, counted)

    def rollback(self) -> None:
        """Roll back. Earlier commits of the unit are lost, too, so the unit has failed."""
        self.failed |= self.commit_requested
        super().rollback()

    def _others(self) -> list[Any]:
        return [row for row in self if not isinstance(row, (Grade, Comment))]

    def settle(self) -> None:
        """Commit, if requested."""
        if self.commit_requested and not self.failed:
            super().commit()


@cache
def _counted(kind: Any) -> frozenset[str]:
    """Return what of a row changes with others: sums over them, and lists of them. Its own columns nobody changes but itself."""
    columns = {
        attribute.key for attribute in inspect(kind).column_attrs if not isinstance(attribute.expression, Column)
    }
    return frozenset(columns | {attribute.key for attribute in inspect(kind).relationships if attribute.uselist})


class TransactionalGradebook(Gradebook):  # type: ignore[misc]
    """nbgrader's gradebook, which may be opened and closed many times over one connection to its database.

    Every outermost ``with`` block is a unit: what is committed in it is written at its end, unless it or a block in it ended in an
    exception, or something in it was rolled back.
    """

    db: Any

    def __init__(self, db_url: str, course_id: str) -> None:
        super().__init__(db_url, course_id)
        super().close()
        # nbgrader connects anew for every step; a connection that waits while others are graded may have been cut meanwhile.
        self.engine = create_engine(db_url, pool_pre_ping=True)
        self.db = scoped_session(sessionmaker(bind=self.engine, class_=_Unit, expire_on_commit=False))
        self._depth, self._failed = 0, False

    def __enter__(self) -> Self:
        self._depth += 1
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        self._depth -= 1
        self._failed = self._failed or kind is not None
        if not self._depth:
            self._end(reported=kind is not None)

    def close(self) -> None:
        """End the unit, unless this is within one: then the gradebook stays open, and the unit with it."""
        if not self._depth:
            self._end(reported=False)

    def _end(self, *, reported: bool) -> None:
        failed = self._failed or self.db().failed
        try:
            if not failed:
                self.db().settle()
        finally:
            self._failed = False
            self.forget()
        if failed and not reported:
            raise RuntimeError("part of the transaction failed, so nothing was written to the gradebook")

    def forget(self) -> None:
        """Let go of what was read, and of what was not committed."""
        self.db.remove()

    def dispose(self) -> None:
        """Close the connection. Uncommitted changes are lost."""
        self.forget()
        self.engine.dispose()


class CachedGradebook(TransactionalGradebook):
    """A gradebook for grading: rows that nbgrader looks up one by one are read with one query for all of a notebook's, and once a unit."""

    def __init__(self, db_url: str, course_id: str) -> None:
        super().__init__(db_url, course_id)
        self._known: dict[tuple[Any, ...], Any] = {}

    def forget(self) -> None:
        """Let go of what was read, and of what was not committed."""
        self._known.clear()
        super().forget()

    def find_assignment(self, name: str) -> Any:
        """As nbgrader's, from one query a unit."""
        return self._row(("assignment", name), partial(super().find_assignment, name))

    def find_notebook(self, name: str, assignment: str) -> Any:
        """As nbgrader's, from one query a unit."""
        key = name, assignment
        return self._row(("notebook", *key), partial(super().find_notebook, *key))

    def find_submission(self, assignment: str, student: str) -> Any:
        """As nbgrader's, from one query a unit."""
        key = assignment, student
        return self._row(("submission", *key), partial(super().find_submission, *key))

    def find_submission_notebook(self, notebook: str, assignment: str, student: str) -> Any:
        """As nbgrader's, from one query a unit."""
        key = notebook, assignment, student
        return self._row(("submitted notebook", *key), partial(super().find_submission_notebook, *key))

    def find_source_cell(self, name: str, notebook: str, assignment: str) -> Any:
        """As nbgrader's, from one query for all source cells of the notebook."""
        cells = self._once(("source", notebook, assignment), lambda: self._cells(SourceCell, notebook, assignment))
        return cells.get(name) or super().find_source_cell(name, notebook, assignment)

    def find_graded_cell(self, name: str, notebook: str, assignment: str) -> Any:
        """As nbgrader's, from one query for all cells of the notebook that carry points."""
        cells = self._once(("graded", notebook, assignment), lambda: self._cells(GradeCell, notebook, assignment))
        return cells.get(name) or super().find_graded_cell(name, notebook, assignment)

    def find_grade(self, grade_cell: str, notebook: str, assignment: str, student: str) -> Any:
        """As nbgrader's, from one query for all grades of the submission."""
        key = notebook, assignment, student
        grades = self._once(("grade", *key), lambda: self._marks(Grade, (GradeCell, TaskCell), *key))
        return grades.get(grade_cell) or super().find_grade(grade_cell, *key)

    def find_comment(self, solution_cell: str, notebook: str, assignment: str, student: str) -> Any:
        """As nbgrader's, from one query for all comments of the submission."""
        key = notebook, assignment, student
        comments = self._once(("comment", *key), lambda: self._marks(Comment, (SolutionCell, TaskCell), *key))
        return comments.get(solution_cell) or super().find_comment(solution_cell, *key)

    def _row(self, key: tuple[Any, ...], ask: Callable[[], Any]) -> Any:
        """Return a row that was found before, as long as it is there."""
        row = self._known.get(key)
        if row is None or row not in self.db:
            row = self._known[key] = ask()
        return row

    def _once(self, key: tuple[Any, ...], ask: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        if key not in self._known:
            self._known[key] = ask()
        result: dict[str, Any] = self._known[key]
        return result

    def _cells(self, kind: Any, notebook: str, assignment: str) -> dict[str, Any]:
        cells = self.db.scalars(_cells_of(kind), {"notebook": notebook, "assignment": assignment})
        return {cell.name: cell for cell in cells}

    def _marks(self, kind: Any, cells: Iterable[Any], notebook: str, assignment: str, student: str) -> dict[str, Any]:
        types = [cell.__mapper_args__["polymorphic_identity"] for cell in cells]
        parameters = {"notebook": notebook, "assignment": assignment, "student": student, "types": types}
        # Where two kinds of cell have one name, nbgrader takes the first kind.
        rows = sorted(self.db.execute(_marks_of(kind), parameters), key=lambda row: types.index(row[0]), reverse=True)
        return {name: mark for _, name, mark in rows}


# To put a question together takes SQLAlchemy longer than to ask it.


@cache
def _cells_of(kind: Any) -> Select[Any]:
    return (
        select(kind)
        .join(Notebook, Notebook.id == kind.notebook_id)
        .join(Assignment, Assignment.id == Notebook.assignment_id)
        .where(Notebook.name == bindparam("notebook"), Assignment.name == bindparam("assignment"))
    )


@cache
def _marks_of(kind: Any) -> Select[Any]:
    return (
        select(BaseCell.type, BaseCell.name, kind)
        .join(BaseCell, BaseCell.id == kind.cell_id)
        .join(SubmittedNotebook, SubmittedNotebook.id == kind.notebook_id)
        .join(Notebook, Notebook.id == SubmittedNotebook.notebook_id)
        .join(SubmittedAssignment, SubmittedAssignment.id == SubmittedNotebook.assignment_id)
        .join(Assignment, Assignment.id == SubmittedAssignment.assignment_id)
        .where(Notebook.name == bindparam("notebook"), Assignment.name == bindparam("assignment"))
        .where(
            SubmittedAssignment.student_id == bindparam("student"),
            BaseCell.type.in_(bindparam("types", expanding=True)),
        )
    )


def import_steps(steps: Iterable[Any]) -> list[type]:
    """Return the classes of a converter's steps, of which a configuration may give the names."""
    return [import_item(step) if isinstance(step, str) else step for step in steps]


def with_shared_gradebook(kind: type, gradebook: Callable[[], TransactionalGradebook]) -> type:
    """Return a class of nbgrader's, or one made from it, whose methods use a shared gradebook instead of opening another.

    The code is nbgrader's: each method that opens a gradebook is the same method with one other name in its module. Nothing outside the
    returned class changes, so that nbgrader itself goes on as it was in the same process.

    Args:
        kind: a converter or a preprocessor.
        gradebook: returns the gradebook; called when one is opened.
    """

    def opened(db_url: str, course_id: str = "", authenticator: Any = None) -> TransactionalGradebook:
        return gradebook()

    methods: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        for name, method in vars(base).items():
            methods.pop(name, None)
            if isinstance(method, FunctionType) and _opens_gradebook(method):
                methods[name] = _rebound(method, opened)
    return type(kind.__name__, (kind,), {**methods, "__module__": kind.__module__}) if methods else kind


@cache
def _opens_gradebook(method: FunctionType) -> bool:
    return _NAME in method.__code__.co_names and method.__globals__.get(_NAME) is Gradebook


def _rebound(method: FunctionType, opened: Callable[..., TransactionalGradebook]) -> FunctionType:
    names = {**method.__globals__, _NAME: opened}
    copy = FunctionType(method.__code__, names, method.__name__, method.__defaults__, method.__closure__)
    copy.__kwdefaults__ = method.__kwdefaults__
    return copy
