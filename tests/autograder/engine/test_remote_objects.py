"""A graded cell runs as it is written, with proxies in the place of what the student has defined."""

# Graded cells may be written with the asserts of unittest, so they are tried here.
# ruff: noqa: PT009, PT027

from __future__ import annotations

import contextlib
import unittest
from typing import Any

import numpy
import pytest
import torch
from torch import nn

from autograder.engine.checker.remote_objects import (
    RemoteModule,
    RemoteNamespace,
    RemoteObject,
    StudentError,
    exception_of,
)
from autograder.engine.transport.serialization import Opaque, SerializationError

from .student import Student

case = unittest.TestCase()


class TestValues:
    """What goes in and what comes out."""

    @pytest.mark.parametrize(
        "value",
        [None, True, 3, 2**100, -0.5, "text", "", b"ab", 1j, [], [1, [2, (3, {"a": {4}})]], {"a": None, (1, 2): "b"}, {1, 2}, ...,
         slice(1, None), torch.float16, (1,), frozenset({3})],
        ids=repr,
    )  # fmt: skip
    def test_plain_values_come_back_as_they_are(self, student: Student, value: Any) -> None:
        found = student.define("f = lambda x: x")(value)
        assert type(found) is type(value)
        assert found == value

    def test_tensors_and_arrays_in_containers_come_back(self, student: Student) -> None:
        f = student.define("def f(x, *, by=1, **more):\n    return {'sum': (x['a'] * by, [numpy.array(more['b'])])}")
        found = f({"a": torch.arange(3)}, by=2, b=[1.5])
        torch.testing.assert_close(found["sum"][0], torch.tensor([0, 2, 4]))
        numpy.testing.assert_allclose(found["sum"][1][0], [1.5])

    def test_several_outputs_unpack_and_a_named_one_keeps_its_names(self, student: Student) -> None:
        f = student.define(
            "from collections import namedtuple\nPair = namedtuple('Pair', 'x y')\ndef f(): return Pair(1, 2)"
        )
        x, y = f()
        assert (x, y, f().x, f()._asdict()) == (1, 2, 1, {"x": 1, "y": 2})

    def test_what_does_not_cross_is_asked_where_it_is(self, student: Student) -> None:
        f = student.define("class Box:\n    def __init__(self): self.inside = [object()]\ndef f(): return Box()")
        assert isinstance(f(), RemoteObject)
        assert "object object at" in repr(f().inside[0])

    def test_a_function_of_the_checkers_cannot_be_given_to_a_student(self, student: Student) -> None:
        f = student.define("def f(g): return g(1)")
        with pytest.raises(TypeError, match="not callable"):
            f(lambda x: x)
        with pytest.raises(TypeError, match="not callable"):
            f(print)

    def test_a_students_function_can_be_given_to_a_student(self, student: Student) -> None:
        f = student.define("def f(g, x): return g(g(x))\ndef g(x): return x + 1")
        assert f(student.names["g"], 1) == 3

    def test_a_cycle_is_an_error_on_either_side(self, student: Student) -> None:
        endless: list[Any] = []
        endless.append(endless)
        with pytest.raises((SerializationError, RecursionError)):
            student.define("f = lambda x: x")(endless)
        with pytest.raises((TypeError, RecursionError)):
            student.define("def g():\n    x = []\n    x.append(x)\n    return x", "g")()
        assert student.names["f"](1) == 1

    def test_a_huge_result_is_a_description_or_an_error_and_the_next_question_is_answered(
        self, student: Student
    ) -> None:
        f = student.define("def f(n): return torch.zeros(n)")
        assert "MiB" in f(2**25).description
        with pytest.raises(TypeError, match="too much"):
            student.define("def g(): return ['x' * 2**20] * 70", "g")()
        assert f(1).tolist() == [0.0]


class TestKindsOfFunctions:
    """Whatever can be called is called where it lives."""

    @pytest.mark.parametrize(
        "source",
        [
            "def f(x, y=2): return x * y",
            "f = lambda x, y=2: x * y",
            "f = functools.partial(lambda y, x: x * y, 2)",
            "@functools.lru_cache\ndef f(x, y=2): return x * y",
            "@functools.cache\ndef f(x): return x * 2",
            "def twice(g):\n    @functools.wraps(g)\n    def h(*a, **k): return 2 * g(*a, **k)\n    return h\n@twice\ndef f(x): return x",
            "class Times:\n    def __call__(self, x): return x * 2\nf = Times()",
            "class Times:\n    def by_two(self, x): return x * 2\nf = Times().by_two",
            "class Times:\n    @staticmethod\n    def by_two(x): return x * 2\nf = Times.by_two",
            "class Times:\n    @classmethod\n    def by_two(cls, x): return x * 2\nf = Times.by_two",
            "f = (2).__mul__",
            "import operator\nf = operator.methodcaller('__mul__', 2)",
            "@torch.no_grad()\ndef f(x): return x * 2",
            "f = numpy.vectorize(lambda x: x * 2)",
        ],
    )
    def test_anything_callable_is_called(self, student: Student, source: str) -> None:
        f = student.define(source)
        assert f(21) == 42
        assert callable(f)

    def test_arguments_by_keyword_only_and_by_position_only_are_minded(self, student: Student) -> None:
        f = student.define("def f(x, /, *, scale): return x * scale")
        assert f(3, scale=2) == 6
        for wrong in (lambda: f(3, 2), lambda: f(x=3, scale=2), lambda: f(3)):
            with pytest.raises(TypeError):
                wrong()

    def test_a_name_is_the_one_under_which_the_notebook_has_it(self, student: Student) -> None:
        source = "def other(x): return x\nother.__name__ = 'exercise'\nf = other\ng = functools.partial(other)\ng.__name__ = 'exercise'"
        assert student.define(source).__name__ == "f"
        assert student.names["g"].__name__ == "g"

    def test_a_helper_that_a_graded_cell_defines_may_call_a_students_function(self, student: Student) -> None:
        student.define("def f(x): return x + 1")
        names = student.grade("def twice(x):\n    return f(f(x))\n\nresult = [twice(i) for i in range(3)]")
        assert names["result"] == [2, 3, 4]

    def test_a_name_that_nobody_has_defined_is_a_name_error(self, student: Student) -> None:
        with pytest.raises(NameError, match="nowhere"):
            student.grade("nowhere")
        with pytest.raises(KeyError):
            RemoteNamespace()["anything"]

    def test_names_of_python_are_pythons_own_whatever_the_student_calls_so(self, student: Student) -> None:
        student.run("def len(x): return 42\nabs = lambda x: 42\n__file__ = 'mine'")
        names = student.grade("found = len([1]), abs(-2)")
        assert names["found"] == (1, 2)

    def test_a_graded_cell_may_take_a_name_away_and_give_it_back(self, student: Student) -> None:
        student.define("def g(x): return x * x\ndef f(x): return g(x) + 1")
        names = student.grade(
            "kept = g\ndel g\n"
            "try:\n    f(2)\nexcept NameError as error:\n    found = str(error)\n"
            "try:\n    g\nexcept NameError:\n    here = False\n"
            "g = kept\nafter = f(3), g(3)"
        )
        assert names["found"] == "name 'g' is not defined"
        assert (names["here"], names["after"]) == (False, (10, 9))
        assert "g" not in dict(names), "it is the student's again"

    def test_a_name_that_a_graded_cell_has_made_itself_is_its_own_to_delete(self, student: Student) -> None:
        student.define("def f(x): return x")
        names = student.grade("mine = f\nf = 3\ndel f, mine\nfound = f(4)")
        assert names["found"] == 4
        with pytest.raises(NameError):
            student.grade("mine")
        with pytest.raises(NameError):
            student.grade("del nowhere")

    def test_data_are_copies_that_the_checker_owns(self, student: Student) -> None:
        student.run("data = [1, 2]")
        student.grade("mine = data\nmine.append(3)")
        assert student.names["data"] == [1, 2]


class TestInPlace:
    """What a function does to its arguments is done to the checker's."""

    @pytest.mark.parametrize(
        ("body", "argument", "after"),
        [
            ("x.append(4)", [1], [1, 4]),
            ("x.clear()", [1, 2], []),
            ("x[0].append(2)", [[1]], [[1, 2]]),
            ("x.sort(reverse=True)", [1, 3, 2], [3, 2, 1]),
            ("x['b'] = 2", {"a": 1}, {"a": 1, "b": 2}),
            ("del x['a']", {"a": 1}, {}),
            ("x['a']['b'] = 1", {"a": {}}, {"a": {"b": 1}}),
            ("x.add(2)", {1}, {1, 2}),
            ("x[0]['a'] = 1", ({},), ({"a": 1},)),
        ],
    )
    def test_containers_change_and_stay_the_same_objects(
        self, student: Student, body: str, argument: Any, after: Any
    ) -> None:
        inner = argument[0] if isinstance(argument, (list, tuple)) and argument else None
        student.define(f"def f(x):\n    {body}")(argument)
        assert argument == after
        if isinstance(inner, (list, dict)):
            assert argument[0] is inner

    def test_tensors_and_arrays_change_in_place(self, student: Student) -> None:
        tensor, array, kept = torch.zeros(2, 3), numpy.zeros(2), torch.zeros(2)
        view = tensor[0]
        student.define("def f(t, more):\n    t[0] += 1\n    more['a'] -= 1\n    t * 5")(tensor, {"a": array, "k": kept})
        assert view.tolist() == [1, 1, 1]
        assert array.tolist() == [-1, -1]
        assert kept.tolist() == [0, 0]

    def test_a_new_value_of_a_parameter_changes_nothing(self, student: Student) -> None:
        x = [1]
        assert student.define("def f(x):\n    x = x + [2]\n    return x")(x) == [1, 2]
        assert x == [1]

    def test_an_array_that_is_read_only_stays_as_it_is(self, student: Student) -> None:
        array = numpy.zeros(2)
        array.flags.writeable = False
        student.define("def f(x): x += 1")(array)
        assert array.tolist() == [0, 0]


class TestGradients:
    """A graph of the checker's goes on in the student's process."""

    def test_a_loss_of_the_checkers_reaches_its_inputs_through_a_students_function(self, student: Student) -> None:
        f = student.define("def f(x, y): return (x * y).sum(), x ** 2")
        x, y = torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([3.0, 4.0], requires_grad=True)
        total, squares = f(x, y)
        (total * 2 + squares.sum()).backward()
        torch.testing.assert_close(x.grad, 2 * y.detach() + 2 * x.detach())
        torch.testing.assert_close(y.grad, 2 * x.detach())

    def test_what_a_students_own_backward_has_left_on_parameters_is_seen(self, student: Student) -> None:
        model = student.define("from torch import nn\nclass Net(nn.Linear):\n    pass", "Net")(2, 1)
        assert [p.grad for p in model.parameters()] == [None, None]
        model.load_state_dict({"weight": torch.tensor([[1.0, -1.0]]), "bias": torch.zeros(1)})
        step = student.define(
            "def f(m, x):\n    loss = m(x).square().sum()\n    loss.backward()\n    return loss.detach()"
        )
        assert step(model, torch.tensor([[3.0, 1.0]])).item() == 4
        weight, bias = model.weight, model.bias
        torch.testing.assert_close(weight.grad, torch.tensor([[12.0, 4.0]]))
        torch.testing.assert_close(bias.grad, torch.tensor([4.0]))

    def test_only_one_of_two_outputs_may_be_used(self, student: Student) -> None:
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        _, squares = student.define("def f(x): return x * 3, x ** 2")(x)
        squares.sum().backward()
        assert x.grad is not None
        assert x.grad.tolist() == [2, 4]

    def test_one_tensor_given_twice_gets_both_gradients(self, student: Student) -> None:
        x = torch.tensor([3.0], requires_grad=True)
        student.define("def f(x, y): return x * y")(x, x).backward()
        assert x.grad is not None
        assert x.grad.tolist() == [6]

    def test_an_input_that_is_not_used_gets_none(self, student: Student) -> None:
        x, unused = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
        student.define("def f(x, unused): return x * 2")(x, unused).sum().backward()
        assert x.grad is not None
        assert unused.grad is None or not unused.grad.any()

    def test_two_backward_passes_and_two_calls_add_up(self, student: Student) -> None:
        f = student.define("def f(x): return x ** 2")
        x = torch.tensor([2.0], requires_grad=True)
        loss = f(x) + f(f(x))
        loss.backward(retain_graph=True)
        loss.backward()
        assert x.grad is not None
        assert x.grad.tolist() == [2 * (4 + 32)]

    def test_gradients_of_intermediate_tensors_and_by_autograd_grad(self, student: Student) -> None:
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        middle = x * 3
        (found,) = torch.autograd.grad(student.define("def f(x): return x.exp()")(middle).sum(), x)
        torch.testing.assert_close(found, 3 * (3 * x.detach()).exp())

    def test_a_result_that_is_cut_off_needs_no_gradient(self, student: Student) -> None:
        x = torch.ones(2, requires_grad=True)
        assert not student.define("def f(x): return x.detach() * 2")(x).requires_grad
        assert not student.define("def g(x): return x.argmax()", "g")(x).requires_grad

    def test_without_gradients_in_the_checker_there_are_none_in_the_students_process(self, student: Student) -> None:
        f = student.define("def f(x): return x * 2, torch.is_grad_enabled()")
        x = torch.ones(2, requires_grad=True)
        with torch.no_grad():
            result, enabled = f(x)
        assert not result.requires_grad
        assert enabled is False
        assert f(x)[1] is True

    def test_a_second_derivative_is_refused_and_not_wrong(self, student: Student) -> None:
        x = torch.tensor([2.0], requires_grad=True)
        result = student.define("def f(x): return x ** 3")(x)
        with pytest.raises(NotImplementedError, match="second derivative"):
            torch.autograd.grad(result, x, create_graph=True)
        assert torch.autograd.grad(result, x)[0].tolist() == [12]

    def test_an_in_place_change_of_an_argument_with_a_gradient_works_as_on_a_layers_output(
        self, student: Student
    ) -> None:
        x = torch.tensor([1.0], requires_grad=True)
        student.define("def f(x):\n    x *= 2\n    return x * x")(x * 1).backward()
        assert x.grad is not None
        assert x.grad.tolist() == [8]

    def test_numbers_that_have_no_gradient_may_be_among_the_outputs(self, student: Student) -> None:
        x = torch.tensor([3.0, 1.0], requires_grad=True)
        values, order, n = student.define("def f(x):\n    v, i = x.sort()\n    return v, i, len(x)")(x)
        values[0].backward()
        assert (order.tolist(), n) == ([1, 0], 2)
        assert x.grad is not None
        assert x.grad.tolist() == [0, 1]


NET = """
class f(nn.Module):
    def __init__(self, width=3, bias=True):
        super().__init__()
        self.width = width
        self.inner = nn.Linear(width, 2, bias=bias)
        self.register_buffer("shift", torch.ones(2))

    def forward(self, x):
        return self.inner(x) + self.shift
"""


class TestModules:
    """Instances of ``nn.Module``, with weights that the checker gives."""

    def test_a_module_with_given_weights_computes_what_one_here_would(self, student: Student) -> None:
        made = student.define(NET)(3)
        weights = {"inner.weight": torch.randn(2, 3), "inner.bias": torch.randn(2), "shift": torch.randn(2)}
        assert made.load_state_dict(weights).missing_keys == []
        x = torch.randn(4, 3)
        expected = nn.functional.linear(x, weights["inner.weight"], weights["inner.bias"]) + weights["shift"]
        torch.testing.assert_close(made(x).detach(), expected)
        assert {name: value.tolist() for name, value in made.state_dict().items()} == {
            name: value.tolist() for name, value in weights.items()
        }

    def test_a_module_is_one_and_its_class_is_called_by_keyword(self, student: Student) -> None:
        made = student.define(NET)(width=5, bias=False)
        assert isinstance(made, nn.Module)
        assert type(made) is RemoteModule
        assert made.width == 5
        assert made.inner.in_features == 5
        assert "Linear" in repr(made)

    def test_wrong_weights_raise_what_they_raise_here(self, student: Student) -> None:
        made = student.define(NET)()
        with pytest.raises(RuntimeError, match=r"Missing key\(s\)"):
            made.load_state_dict({})

    def test_parameters_come_one_by_one_with_their_names_and_shapes(self, student: Student) -> None:
        made = student.define(NET)()
        assert [tuple(p.shape) for p in made.parameters()] == [(2, 3), (2,)]
        assert {name: p.numel() for name, p in made.named_parameters()} == {"inner.weight": 6, "inner.bias": 2}
        assert sum(p.numel() for p in made.parameters()) == 8
        assert [type(child).__name__ for child in made.children()] == ["RemoteModule"]

    def test_a_loss_goes_back_through_a_module_to_its_input(self, student: Student) -> None:
        made = student.define(NET)()
        x = torch.randn(4, 3, requires_grad=True)
        made(x).sum().backward()
        assert x.grad is not None
        torch.testing.assert_close(x.grad, made.inner.weight.sum(0).expand(4, 3))

    def test_training_and_evaluation_are_told_apart(self, student: Student) -> None:
        made = student.define(NET)()
        assert made.training is True
        made.eval()
        assert made.training is False
        assert made.train().training is True

    def test_an_attribute_is_set_where_the_module_lives(self, student: Student) -> None:
        made = student.define(NET)()
        made.shift = torch.full((2,), 7.0)
        made.width = 9
        assert made.shift.tolist() == [7, 7]
        assert made.width == 9


class TestObjects:
    """Operators, built-in functions and protocols are carried out where the object lives."""

    SOURCE = """
class Vector:
    def __init__(self, *items): self.items = list(items)
    def __len__(self): return len(self.items)
    def __iter__(self): return iter(self.items)
    def __contains__(self, item): return item in self.items
    def __getitem__(self, at): return self.items[at]
    def __setitem__(self, at, item): self.items[at] = item
    def __delitem__(self, at): del self.items[at]
    def __add__(self, other): return Vector(*[a + b for a, b in zip(self, other)])
    def __radd__(self, other): return Vector(*[other + a for a in self])
    def __mul__(self, other): return Vector(*[a * other for a in self])
    __rmul__ = __mul__
    def __matmul__(self, other): return sum(a * b for a, b in zip(self, other))
    def __neg__(self): return self * -1
    def __abs__(self): return (self @ self) ** 0.5
    def __pow__(self, n): return Vector(*[a ** n for a in self])
    def __eq__(self, other): return isinstance(other, Vector) and self.items == other.items
    def __lt__(self, other): return abs(self) < abs(other)
    def __hash__(self): return 7
    def __bool__(self): return any(self.items)
    def __repr__(self): return f"Vector{tuple(self.items)}"
    def __float__(self): return float(abs(self))
    def __int__(self): return int(abs(self))
    def __enter__(self):
        self.items.append("in")
        return self
    def __exit__(self, *error): self.items.append("out")
f = Vector
"""

    def test_operators_work_between_the_students_objects_and_with_numbers(self, student: Student) -> None:
        vector = student.define(self.SOURCE)
        v = vector(3, 4)
        assert (len(v), list(v), 3 in v, 5 in v, v[1], abs(v), float(v), int(v), bool(v)) == (
            2,
            [3, 4],
            True,
            False,
            4,
            5,
            5.0,
            5,
            True,
        )
        assert [repr(item) for item in (v + v, 1 + v, v * 2, 2 * v, -v, v**2)] == [
            "Vector(6, 8)", "Vector(4, 5)", "Vector(6, 8)", "Vector(6, 8)", "Vector(-3, -4)", "Vector(9, 16)",
        ]  # fmt: skip
        assert v @ v == 25
        assert v == vector(3, 4)
        assert v != vector(3, 5)
        assert vector(1, 1) < v
        assert hash(v) == 7
        assert v[0:1] == [3]

    def test_items_are_set_and_deleted_there(self, student: Student) -> None:
        v = student.define(self.SOURCE)(3, 4)
        v[0] = 5
        del v[1]
        assert v.items == [5]

    def test_a_context_is_entered_and_left(self, student: Student) -> None:
        v = student.define(self.SOURCE)(1)
        with v as inside:
            assert inside.items == [1, "in"]
        assert v.items == [1, "in", "out"]

    def test_attributes_are_had_set_and_missed(self, student: Student) -> None:
        v = student.define(self.SOURCE)(1)
        v.name = "v"
        assert v.name == "v"
        assert hasattr(v, "items")
        assert not hasattr(v, "nothing")
        with pytest.raises(AttributeError, match="nothing"):
            v.nothing  # noqa: B018

    def test_a_generator_is_asked_for_one_item_after_the_other(self, student: Student) -> None:
        f = student.define("def f(n):\n    for i in range(n):\n        print(i)\n        yield torch.tensor(i)")
        made = f(1000000)
        assert [int(next(made)), int(next(made))] == [0, 1]
        assert [int(item) for item in f(3)] == [0, 1, 2]
        with pytest.raises(StopIteration):
            next(f(0))

    def test_an_iterator_and_an_iterable_are_gone_through(self, student: Student) -> None:
        f = student.define("class f:\n    def __iter__(self): return iter([1, 2])")
        assert list(f()) == [1, 2]
        assert dict(student.define("def g(): return zip('ab', [1, 2])", "g")()) == {"a": 1, "b": 2}


class TestExceptions:
    """What a student's code raises is raised in the graded cell, by the name and kind that it has."""

    @pytest.mark.parametrize(
        "name", ["ValueError", "TypeError", "KeyError", "IndexError", "ZeroDivisionError", "NotImplementedError"]
    )
    def test_built_in_exceptions_are_what_they_are(self, student: Student, name: str) -> None:
        f = student.define(f"def f(): raise {name}('why')")
        with pytest.raises(getattr(__builtins__, name, None) or __builtins__[name], match="why") as caught:
            f()
        assert caught.type.__name__ == name
        assert caught.value.__notes__ == ["in the student's f, line 3"]

    def test_a_students_own_exception_keeps_its_name_and_the_kind_that_it_derives_from(self, student: Student) -> None:
        f = student.define(
            "class ShapeError(ValueError): pass\nclass Bare(Exception): pass\ndef f(x): raise ShapeError('3')"
        )
        with pytest.raises(ValueError, match="3") as caught:
            f(1)
        assert caught.type.__name__ == "ShapeError"
        with pytest.raises(Exception, match=r".*") as caught:
            student.define("def g(): raise Bare", "g")()
        assert caught.type.__name__ == "Bare"

    @pytest.mark.parametrize(
        ("source", "name"),
        [
            ("def f(): raise KeyboardInterrupt", "KeyboardInterrupt"),
            ("def f(): raise SystemExit('bye')", "SystemExit"),
            ("def f(): exit(3)", None),
            ("def f(): raise GeneratorExit", "GeneratorExit"),
            ("class Own(BaseException): pass\ndef f(): raise Own('x')", "Own"),
            ("def f(): raise ExceptionGroup('many', [ValueError('x')])", None),
            ("def f(): b'\\xff'.decode()", None),
        ],
    )
    def test_what_would_end_a_program_is_an_exception_like_another(
        self, student: Student, source: str, name: str | None
    ) -> None:
        with pytest.raises(Exception, match=r".*") as caught:
            student.define(source)()
        assert isinstance(caught.value, Exception)
        assert name in (None, caught.type.__name__)
        assert student.define("g = lambda: 1", "g")() == 1

    @pytest.mark.parametrize(
        "method",
        [
            "raise ValueError",
            "return 3",
            "import sys; sys.exit()",
            "return str(self)",
            "return 'x' * 10**7",
            "return '\\ud800'",
        ],
    )
    def test_an_exception_that_cannot_say_what_it_is_is_told_all_the_same(self, student: Student, method: str) -> None:
        f = student.define(f"class Odd(ValueError):\n    def __str__(self): {method}\ndef f(): raise Odd('x')")
        with pytest.raises(Exception, match=r".*") as caught:
            f()
        assert len(str(caught.value)) <= 4000
        assert student.define("g = lambda: 1", "g")() == 1

    def test_endless_recursion_is_a_recursion_error(self, student: Student) -> None:
        with pytest.raises(RecursionError):
            student.define("def f(): return f()")()

    @pytest.mark.parametrize(
        "value",
        [
            "type('Shy', (), {'__repr__': lambda self: 1 / 0})()",
            "{type('Shy', (), {'__repr__': lambda self: 1 / 0})(), 1}",
            "type('Named', (), {'__getattr__': lambda self, name: 1 / 0})()",
            "type('Liar', (), {'__class__': property(lambda self: 1 / 0)})()",
            "type('Deaf', (torch.Tensor,), {'__torch_function__': lambda *a, **k: 1 / 0})()",
            "type('Long', (list,), {'__len__': lambda self: 10**9})()",
            "type('Type', (type,), {'__name__': property(lambda c: 1 / 0)})('T', (), {})",
            "{float('nan'): 1, type('Key', (), {'__hash__': lambda self: 5})(): 2}",
        ],
    )
    def test_an_object_that_cannot_be_looked_at_is_an_error_or_a_proxy_and_the_next_question_is_answered(
        self, student: Student, value: str
    ) -> None:
        f = student.define(f"def f(): return {value}")
        with contextlib.suppress(Exception):
            f()
        assert student.conversation.alive
        assert student.define("g = lambda: 1", "g")() == 1


class TestGradedCells:
    """Asserts as tests write them."""

    def test_asserts_of_unittest_pass_and_fail(self, student: Student) -> None:
        f = student.define("def f(x):\n    if x < 0: raise ValueError('negative')\n    return x ** 0.5")
        case.assertAlmostEqual(f(2), 1.41421356)
        case.assertEqual(f(4), 2)
        case.assertIsInstance(f(4), float)
        with case.assertRaisesRegex(ValueError, "negative"):
            f(-1)
        case.assertRaises(ValueError, f, -1)
        with pytest.raises(AssertionError):
            case.assertAlmostEqual(f(2), 1.5)
        with pytest.raises(AssertionError):
            case.assertRaises(TypeError, f, 4)

    def test_asserts_of_numpy_and_of_pytorch_pass_and_fail(self, student: Student) -> None:
        f = student.define("def f(x): return numpy.asarray(x) * 2, torch.as_tensor(x) * 2")
        array, tensor = f(numpy.arange(3.0))
        numpy.testing.assert_array_equal(array, [0, 2, 4])
        numpy.testing.assert_allclose(tensor, [0, 2, 4])
        torch.testing.assert_close(tensor, torch.tensor([0, 2, 4], dtype=torch.float64))
        with pytest.raises(AssertionError):
            numpy.testing.assert_allclose(array, [0, 2, 5])
        with pytest.raises(AssertionError):
            torch.testing.assert_close(tensor, torch.zeros(3, dtype=torch.float64))

    def test_a_subclass_that_is_equal_to_everything_comes_as_a_tensor_that_is_not(self, student: Student) -> None:
        f = student.define(
            "class Always(torch.Tensor):\n"
            "    @classmethod\n"
            "    def __torch_function__(cls, func, types, args=(), kwargs=None): return True\n"
            "def f(): return torch.Tensor._make_subclass(Always, torch.zeros(2))"
        )
        with pytest.raises((AssertionError, Exception), match=r".*") as caught:
            torch.testing.assert_close(f(), torch.ones(2))
        assert not isinstance(caught.value, pytest.fail.Exception)

    def test_a_number_that_is_equal_to_everything_comes_as_a_number(self, student: Student) -> None:
        source = "class Always(float):\n    def __eq__(self, other): return True\ndef f(): return Always(1)"
        assert student.define(source)() != 2

    def test_a_proxy_never_says_that_two_things_are_equal_where_the_checker_compares_numbers(
        self, student: Student
    ) -> None:
        f = student.define("class Always:\n    def __eq__(self, other): return True\ndef f(): return Always()")
        for compare in (torch.testing.assert_close, numpy.testing.assert_allclose):
            with pytest.raises(Exception, match=r".*"):
                compare(f(), torch.ones(2))


@pytest.mark.parametrize(
    "raised",
    [
        None, 3, [], {}, {"text": 3}, {"type": "a b", "bases": ["ValueError"]}, {"type": "X", "bases": "ValueError"},
        {"type": "X", "bases": [3, "SystemExit", "KeyboardInterrupt", "nowhere", "print"]}, {"type": "X", "bases": ["UnicodeDecodeError"]},
        {"type": "X", "bases": ["ExceptionGroup"], "text": "x"}, {"type": "X", "where": [3, "y" * 10**6]}, {"type": "X", "where": "w"},
        Opaque("x"), {"type": "class", "text": "x" * 10**5},
    ],
    ids=repr,
)  # fmt: skip
def test_whatever_is_said_to_have_been_raised_an_exception_comes_of_it(raised: Any) -> None:
    error = exception_of(raised)
    assert isinstance(error, Exception)
    assert isinstance(str(error), str)
    assert all(len(note) < 300 for note in getattr(error, "__notes__", []))


def test_an_exception_that_claims_to_be_more_than_one_is_only_a_students() -> None:
    assert isinstance(exception_of({"type": "SystemExit", "bases": ["BaseException"], "text": ""}), StudentError)
    assert not isinstance(
        exception_of({"type": "KeyboardInterrupt", "bases": ["KeyboardInterrupt"]}), KeyboardInterrupt
    )
