"""Keep a gradebook open, and commit related changes in one transaction.

Opening a gradebook is slower than any query: nbgrader creates an engine, and inspects every table and the course.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Self

from nbgrader.api import (
    Comment,
    Grade,
    Gradebook,
)
from sqlalchemy import Column, create_engine, inspect
from sqlalchemy.orm import Session, scoped_session, sessionmaker


class _UnitSession(Session):  # type: ignore[misc]
    """A session whose commits take effect together when the gradebook is closed.

    nbgrader commits after every cell, and a commit waits for the disk. Here what belongs together is written at once, all or none.
    """

    commit_requested = failed = False

    def commit(self) -> None:
        """Flush the changes, and request a commit at the end of the unit."""
        if self.new or self.deleted or any(self.is_modified(row) for row in self._other_rows()):
            self.flush()
        self.commit_requested = True
        for row in self._other_rows():
            # As after any commit: what is counted from other rows, such as a notebook's score, is asked for anew.
            if counted := _derived_attributes(row.__class__) & row.__dict__.keys():
                self.expire(row, counted)

    def rollback(self) -> None:
        """Roll back. If a commit was requested before, it is lost too, and the unit counts as failed."""
        self.failed |= self.commit_requested
        super().rollback()

    def _other_rows(self) -> list[Any]:
        return [row for row in self if not isinstance(row, (Grade, Comment))]

    def commit_if_requested(self) -> None:
        """Commit the transaction if a commit was requested."""
        if self.commit_requested and not self.failed:
            super().commit()


@cache
def _derived_attributes(kind: Any) -> frozenset[str]:
    """Return a row's attributes that depend on other rows: aggregates over them, and lists of them."""
    columns = {
        attribute.key for attribute in inspect(kind).column_attrs if not isinstance(attribute.expression, Column)
    }
    return frozenset(columns | {attribute.key for attribute in inspect(kind).relationships if attribute.uselist})


class TransactionalGradebook(Gradebook):  # type: ignore[misc]
    """nbgrader's gradebook, which can be opened and closed repeatedly over one database connection.

    Every outermost ``with`` block is a unit: what is committed in it is written at its end, unless it or a block in it ended in an
    exception, or something in it was rolled back.
    """

    db: Any

    def __init__(self, db_url: str, course_id: str) -> None:
        super().__init__(db_url, course_id)
        super().close()
        # nbgrader connects anew for every step; a connection that waits while others are graded may have been cut meanwhile.
        self.engine = create_engine(db_url, pool_pre_ping=True)
        self.db = scoped_session(sessionmaker(bind=self.engine, class_=_UnitSession, expire_on_commit=False))
        self._depth, self._failed = 0, False

    def __enter__(self) -> Self:
        self._depth += 1
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        self._depth -= 1
        self._failed = self._failed or kind is not None
        if not self._depth:
            self._end_transaction(reported=kind is not None)

    def close(self) -> None:
        """End the unit if no ``with`` block is active."""
        if not self._depth:
            self._end_transaction(reported=False)

    def _end_transaction(self, *, reported: bool) -> None:
        failed = self._failed or self.db().failed
        try:
            if not failed:
                self.db().commit_if_requested()
        finally:
            self._failed = False
            self.discard()
        if failed and not reported:
            raise RuntimeError("part of the transaction failed, so nothing was written to the gradebook")

    def discard(self) -> None:
        """Discard loaded rows and uncommitted changes."""
        self.db.remove()

    def dispose(self) -> None:
        """Close the connection. Uncommitted changes are lost."""
        self.discard()
        self.engine.dispose()
