"""Collect a cell's outputs in notebook format within limits, and keep only text and images of a student's outputs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any


class Outputs:
    """Collects a cell's outputs in notebook format, up to a limit of characters; adjacent text is merged.

    Args:
        kept: maximum number of characters; a result and an error are always kept, because they show how the cell ended.
    """

    def __init__(self, limit: int) -> None:
        self.items: list[dict[str, Any]] = []
        self.characters = 0
        self._kept = limit
        self._left_out = self._clear_before_next = False
        self._displays: dict[str, dict[str, Any]] = {}

    def add(self, output: Mapping[str, Any]) -> None:
        """Add an output, or apply it if it clears or updates earlier outputs."""
        kind = output.get("output_type")
        size = estimate_size(output)
        self.characters += size
        if kind == "clear_output" and output.get("wait"):
            self._clear_before_next = True
            return
        if kind == "clear_output" or self._clear_before_next:
            self._clear()
            self.characters = size
        if kind == "error":
            self.items.append(_shortened_error(output))
        elif kind == "execute_result" and size <= self._kept:
            self.items.append(
                {"output_type": kind, "data": _keep_safe_media(output), "metadata": {}, "execution_count": None}
            )
        elif self.characters > self._kept:
            self._add_truncation_notice()
        elif kind == "stream":
            self._add_stream(str(output.get("name")), str(output.get("text")))
        elif kind == "display_data":
            self._add_display(output)

    def _clear(self) -> None:
        self.items.clear()
        self._displays.clear()
        self._left_out = self._clear_before_next = False

    def _add_display(self, output: Mapping[str, Any]) -> None:
        name, data = str(output.get("display_id")), _keep_safe_media(output)
        if output.get("update"):
            if name in self._displays:
                self._displays[name]["data"] = data
            return
        item = {"output_type": "display_data", "data": data, "metadata": {}}
        self.items.append(item)
        if output.get("display_id") is not None:
            self._displays[name] = item

    def _add_stream(self, name: str, text: str) -> None:
        name = "stderr" if name == "stderr" else "stdout"
        last = self.items[-1] if self.items else {}
        if last.get("output_type") == "stream" and last["name"] == name:
            last["text"] += text
        else:
            self.items.append({"output_type": "stream", "name": name, "text": text})

    def _add_truncation_notice(self) -> None:
        if not self._left_out:
            self._left_out = True
            self._add_stream("stdout", f"\n[what follows is left out: a cell keeps {self._kept} characters]\n")


_BASE64 = re.compile(r"[A-Za-z0-9+/=\s]*")
_TRACEBACK_LINES, _ERROR_CHARACTERS = 60, 4_000


def _shortened_error(output: Mapping[str, Any]) -> dict[str, Any]:
    lines = output.get("traceback")
    texts = [str(line)[:_ERROR_CHARACTERS] for line in lines][-_TRACEBACK_LINES:] if isinstance(lines, list) else []
    return {
        "output_type": "error",
        "ename": str(output.get("ename"))[:200],
        "evalue": str(output.get("evalue"))[:_ERROR_CHARACTERS],
        "traceback": texts,
    }


_PICTURES = ("image/png", "image/jpeg")


def _keep_safe_media(output: Mapping[str, Any]) -> dict[str, Any]:
    """Return an output's plain text and images only, because a page would run other media types."""
    data = output.get("data")
    if not isinstance(data, dict):
        return {}
    harmless = {"text/plain": data["text/plain"]} if isinstance(data.get("text/plain"), str) else {}
    pictures = {
        mime: data[mime] for mime in _PICTURES if isinstance(data.get(mime), str) and _BASE64.fullmatch(data[mime])
    }
    return harmless | pictures


def estimate_size(content: Any, depth: int = 0) -> int:
    """Return the approximate number of characters in an output."""
    if isinstance(content, str):
        return len(content)
    if depth < 20 and isinstance(content, Mapping):
        return sum(estimate_size(item, depth + 1) for item in content.values())
    if depth < 20 and isinstance(content, (list, tuple)):
        return sum(estimate_size(item, depth + 1) for item in content)
    return 8
