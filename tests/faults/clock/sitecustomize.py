"""Set this process's clock back by an hour after some seconds. Only a test of faults puts this file on a path."""

import datetime
import os
import time

_AFTER = float(os.environ.get("TFCOURSE_TEST_CLOCK_BACK_AFTER", "inf"))
_BEGIN = time.monotonic()
_HOUR = 3600
_time, _time_ns = time.time, time.time_ns


def _offset() -> int:
    return _HOUR if time.monotonic() - _BEGIN > _AFTER else 0


class _Datetime(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return super().now(tz) - datetime.timedelta(seconds=_offset())


time.time = lambda: _time() - _offset()
time.time_ns = lambda: _time_ns() - _offset() * 10**9
datetime.datetime = _Datetime
