"""Cases that differ from others in a few arguments: what most errors and limits are."""

from __future__ import annotations

from dataclasses import replace

from autograder.checking.draw import Case, Draw
from autograder.checking.request import Value
from autograder.checking.rows import Maker


def changed(maker: Maker, **arguments: Value) -> Maker:
    """Make what a maker makes, with some arguments replaced."""

    def variant(draw: Draw) -> Case:
        return maker(draw).with_arguments(**arguments)

    return variant


def built(maker: Maker, **init: Value) -> Maker:
    """Make what a maker makes, with some of the constructor's arguments replaced."""

    def variant(draw: Draw) -> Case:
        case = maker(draw)
        return replace(case, init={**(case.init or {}), **init})

    return variant
