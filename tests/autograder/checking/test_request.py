"""What is asked of a subject, and how its answer is taken apart."""

from collections import namedtuple

import numpy
import torch

from autograder.checking.request import flatten_outputs, make_cotangent

Point = namedtuple("Point", "x y")


def test_outputs_are_named_after_their_place():
    nested = (1, [2, (3,)], {"loss": 4, 5: 6})
    assert flatten_outputs(nested) == {
        "output[0]": 1,
        "output[1][0]": 2,
        "output[1][1][0]": 3,
        "output[2]['loss']": 4,
        "output[2][5]": 6,
    }
    assert flatten_outputs(None) == {"output": None}
    assert flatten_outputs(()) == {}
    assert flatten_outputs(Point(1, 2)) == flatten_outputs((1, 2)), "a named tuple is as good as a plain one"


def test_a_single_number_of_numpy_is_the_number_that_it_equals():
    numbers = flatten_outputs((numpy.int64(3), numpy.sqrt(4.0), numpy.bool_(True), numpy.ones(1)))
    assert [type(number) for number in numbers.values()] == [int, float, bool, numpy.ndarray]
    assert list(numbers.values())[:3] == [3, 2.0, True]


def test_the_gradient_sent_back_depends_on_the_shape_alone_and_tells_places_apart():
    sent = make_cotangent(torch.rand(3, 4))
    torch.testing.assert_close(sent, make_cotangent(torch.rand(3, 4)), rtol=0, atol=0)
    assert len(set(sent.flatten().tolist())) == 12, "equal numbers would hide a mix-up of places"
    assert make_cotangent(torch.rand(2, dtype=torch.float64)).dtype == torch.float64
