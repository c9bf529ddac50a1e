"""Define subjects: the code that a check examines by requests and observations, possibly in another process."""

from __future__ import annotations

import inspect
import sys
import threading
import warnings
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import cache
from types import CodeType, FrameType
from typing import Any, Protocol, cast

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from autograder.checking.by_shape import compute_on_meta_device
from autograder.checking.executed_lines import LineCounter
from autograder.checking.props import build_fixtures, read_model_weights
from autograder.checking.refusal import refusing_functions
from autograder.checking.request import (
    Observation,
    Request,
    WeightsError,
    WrongResultError,
    content_key,
    flatten_outputs,
    list_container_kinds,
    list_tensors,
    make_cotangent,
    map_value,
)
from autograder.checking.value_text import result_name


class Subject(Protocol):
    """Code that answers requests."""

    def observe(self, request: Request) -> Observation:
        """Carry out a request and return the observation. The examined code never makes it raise."""
        ...

    def observe_groups(
        self, groups: Sequence[Sequence[Request]], *, forbidden: Sequence[str] = ()
    ) -> list[list[Observation]]:
        """Carry out groups of requests in order, and return the observations.

        Args:
            groups: what to do. Where something ends it all, the groups that were done before keep their observations.
            forbidden: names of functions that are refused meanwhile (see :mod:`autograder.checking.refusal`).
        """
        ...


class UsesReferenceError(Exception):
    """The examined code called the course's own solution."""


class LocalSubject:
    """A function or class in this process.

    Args:
        candidate: the function or ``nn.Module`` class to examine.
        off_limits: code that the candidate must not run: the course's own solutions.
        off_folder: a folder none of whose code the candidate may run, or empty: where the checks are declared.
    """

    def __init__(
        self, candidate: Callable[..., Any], off_limits: Set[CodeType] = frozenset(), off_folder: str = ""
    ) -> None:
        self._candidate = candidate
        self._off_limits = off_limits
        self._off_folder = off_folder
        self._seen: dict[Hashable, Observation] = {}
        self._read: tuple[Hashable, nn.Module] | None = None

    def observe(self, request: Request) -> Observation:
        """Carry out a request and return the observation."""
        with (
            warnings.catch_warnings(),
            pytorch_defaults(),
            _seed_random_numbers(),
            _watch_off_limits(self._off_limits, self._off_folder) as borrowed,
        ):
            # nbgrader would take all points for a warning on stderr.
            warnings.simplefilter("ignore")
            observation = self._attempt_request(request)
        if borrowed:
            return Observation(error=f"{UsesReferenceError.__name__}: {borrowed[0]}")
        return observation

    def observe_groups(
        self, groups: Sequence[Sequence[Request]], *, forbidden: Sequence[str] = ()
    ) -> list[list[Observation]]:
        """Carry out groups of requests in order, each distinct request once, and return the observations."""
        name = getattr(self._candidate, "__name__", "it")
        with refusing_functions(name, forbidden) if forbidden else nullcontext(set[str]()) as called:
            return [[self._observe_once(request, called) for request in group] for group in groups]

    def _observe_once(self, request: Request, called: set[str]) -> Observation:
        key = content_key(request)
        if key not in self._seen:
            self._seen[key] = self.observe_refused(request, called)
        return self._seen[key]

    def observe_refused(self, request: Request, called: set[str]) -> Observation:
        """Carry out a request while functions are refused, and record the refused functions that it called.

        Args:
            request: the request.
            called: the set that takes the names of refused functions; they are recorded in this observation and removed from the set.
        """
        observation = self.observe(request)
        if called:
            observation = replace(observation, functions=tuple(sorted(called)))
            called.clear()
        return observation

    def _attempt_request(self, request: Request) -> Observation:
        try:
            if request.action == "call" and request.method == "get_parameter":
                return _ACTIONS[request.action](self._build_once(request), replace(request, init=None))
            return _ACTIONS[request.action](self._candidate, request)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # exit() in the examined code ends that code, not the check
            return _failed_observation(error)

    def _build_once(self, request: Request) -> nn.Module:
        """Return the instance that a request reads, built once for consecutive requests with the same instance."""
        key = content_key(replace(request, arguments={}))
        if self._read is None or self._read[0] != key:
            self._read = key, cast("nn.Module", prepare_candidate(self._candidate, request))
        return self._read[1]


def _failed_observation(error: BaseException) -> Observation:
    # PyTorch raises NotImplementedError too, for what a device or a dtype cannot do, and then says so; a stub says nothing.
    unfinished = isinstance(error, NotImplementedError) and not _error_text(error)
    return Observation(error=_describe_error(error), unfinished=unfinished)


def _describe_error(error: BaseException) -> str:
    text = _error_text(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _error_text(error: BaseException) -> str:
    """Return an exception's text on one line; str() of a student's exception may fail."""
    try:
        return " ".join(str(error).split())[:300]
    except Exception:
        return "(its text cannot be shown)"


def prepare_candidate(candidate: Callable[..., Any], request: Request) -> Callable[..., Any]:
    """Return the candidate, or an instance of it with the request's weights."""
    if request.init is None:
        return candidate
    module = candidate(**request.init)
    if not isinstance(module, nn.Module):
        raise TypeError(
            f"{candidate.__name__}(…) should create a torch.nn.Module, but it created a {type(module).__name__}"
        )
    if request.state is not None:
        _load_weights(module, request.state)
    return module.train(request.training)


def _load_weights(module: nn.Module, state: Mapping[str, Tensor]) -> None:
    """Load the weights in ``state``, which must match the module's learned weights by name.

    Buffers, frozen tables, and further names of a shared weight do not count. A scalar weight may have shape (1,), too.
    """
    weights = module.state_dict(keep_vars=True)
    loaded = {id(weights[name]) for name in state if name in weights}
    missing = sorted(set(state) - set(weights))
    extra = sorted(name for name, weight in _learned_weights(module) if id(weight) not in loaded)
    if missing or extra:
        raise WeightsError(
            "its weights do not have the names that the docstring gives: "
            + "; ".join(
                [f"it lacks {', '.join(missing)}"] * bool(missing)
                + [f"it has further parameters: {', '.join(extra)}"] * bool(extra)
            )
        )
    for name, value in state.items():
        if weights[name].shape != value.shape and (value.dim() or weights[name].numel() != 1):
            raise WeightsError(
                f"{name} should have shape {tuple(value.shape)}, but it has {tuple(weights[name].shape)}"
            )
    values = {id(weights[name]): value for name, value in state.items()}
    first = next(iter(state.values()), None)
    if first is not None:
        module.to(device=first.device, dtype=first.dtype)
    # By each of its names: on another device, a shared weight may have become two.
    module.load_state_dict(
        {name: values[id(old)].reshape(old.shape) for name, old in weights.items() if id(old) in values}, strict=False
    )


def _learned_weights(module: nn.Module) -> list[tuple[str, nn.Parameter]]:
    """Return a module's learned weights by name; a shared weight has one name."""
    return [(name, weight) for name, weight in module.named_parameters() if weight.requires_grad]


def _named_weights(module: nn.Module, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return a module's parameters by their names in ``state``; if none is in it, its learned weights by their own names."""
    weights = module.state_dict(keep_vars=True)
    called = {id(weights[name]): name for name in reversed(list(state)) if name in weights}
    named = [(called[id(weight)], weight) for _, weight in module.named_parameters() if id(weight) in called]
    return dict(named) or dict(_learned_weights(module))


def _target_callable(target: Callable[..., Any], request: Request) -> Callable[..., Any]:
    """Return the callable of a request."""
    return target if request.method is None else cast("Callable[..., Any]", getattr(target, request.method))


def _observe_call(candidate: Callable[..., Any], request: Request) -> Observation:
    target = _target_callable(prepare_candidate(candidate, request), request)
    # The candidate works on copies: its changes must not reach the next request.
    arguments = map_value(request.arguments, Tensor.clone)
    props = build_fixtures(request.props, request.arguments) if request.props else {}
    with torch.set_grad_enabled(bool(props)):  # a function that takes a model may have to train it
        result = target(**arguments, **props)
    mutated = tuple(name for name, value in request.arguments.items() if not _is_unchanged(value, arguments[name]))
    outputs, containers = flatten_outputs(map_value(result, Tensor.detach)), list_container_kinds(result)
    if not props:
        return Observation(outputs=outputs, mutated=mutated, containers=containers)
    mutated += tuple(name for name, prop in (request.props or {}).items() if _is_reseeded(prop, props[name]))
    leaves = flatten_outputs(result).items()
    attached = tuple(name for name, leaf in leaves if isinstance(leaf, Tensor) and leaf.requires_grad)
    return Observation(
        outputs={**outputs, **read_model_weights(props)}, mutated=mutated, attached=attached, containers=containers
    )


def _is_unchanged(a: Any, b: Any) -> bool:
    """Return whether an argument is unchanged: the same items in the same order, of the same types."""
    if isinstance(a, Tensor):
        if not isinstance(b, Tensor) or a.dtype != b.dtype or a.shape != b.shape:
            return False
        # NaN does not equal itself, and is rare.
        return torch.equal(a, b) or torch.equal(a.nan_to_num(), b.nan_to_num())
    if isinstance(a, Mapping):
        return isinstance(b, Mapping) and list(a) == list(b) and all(map(_is_unchanged, a.values(), b.values()))
    if isinstance(a, (tuple, list)):
        return (
            isinstance(b, list if isinstance(a, list) else tuple) and len(a) == len(b) and all(map(_is_unchanged, a, b))
        )
    return type(a) is type(b) and bool(a == b or a != a)


def _is_reseeded(prop: Mapping[str, Any], built: Any) -> bool:
    """Return whether a generator has another seed than before; drawing does not change the seed."""
    return isinstance(built, torch.Generator) and built.initial_seed() != prop["init"]["seed"]


def _observe_gradients(candidate: Callable[..., Any], request: Request) -> Observation:
    target = prepare_candidate(candidate, request)
    arguments = map_value(request.arguments, Tensor.clone)
    # An argument such as a cache may hold several tensors, each with its own gradient.
    named = {key: leaf for name in request.wrt for key, leaf in flatten_outputs(arguments[name], name).items()}
    leaves = {f"gradient of {key}": leaf.requires_grad_() for key, leaf in named.items()}
    # A layer in place of a function may have any weights.
    if request.init is not None and isinstance(target, nn.Module):
        weights = _named_weights(target, request.state or {})
        leaves |= {f"gradient of {name}": weight for name, weight in weights.items()}
    with torch.enable_grad():
        # A leaf that requires a gradient cannot be changed in place; its product with 1 can, like a layer's output.
        passed = {
            name: map_value(value, lambda tensor: tensor * 1) if name in request.wrt else value
            for name, value in arguments.items()
        }
        result = _target_callable(target, request)(**passed, **build_fixtures(request.props or {}, request.arguments))
        outputs = [leaf for leaf in flatten_outputs(result).values() if isinstance(leaf, Tensor)]
        attached = [output for output in outputs if output.requires_grad]
        if result is None:
            raise WrongResultError("it returns nothing, so no gradient flows back: is there a return?")
        if not attached:
            raise WrongResultError(
                "the result is cut off from the inputs: no gradient flows back (detach(), .data, .item() or no_grad()?)"
            )
        grads = torch.autograd.grad(_scalar_with_cotangents(attached), list(leaves.values()), allow_unused=True)
    gradients = {
        name: torch.zeros_like(leaf) if grad is None else grad
        for (name, leaf), grad in zip(leaves.items(), grads, strict=True)
    }
    scalars = {f"gradient of {name}" for name, value in (request.state or {}).items() if not value.dim()}
    return Observation(
        outputs={
            name: value.detach().reshape(() if name in scalars else value.shape) for name, value in gradients.items()
        }
    )


def _scalar_with_cotangents(outputs: Sequence[Tensor]) -> Tensor:
    """Return a scalar whose gradient with respect to each output is exactly its :func:`make_cotangent`.

    Passing the cotangents to ``torch.autograd.grad`` gives the same, but makes PyTorch import a computer algebra system to compare shapes.
    """
    finite = [_finite_part(o) for o in outputs]
    sums = [
        torch.view_as_real(o * make_cotangent(o).conj()).sum() if o.is_complex() else (o * make_cotangent(o)).sum()
        for o in finite
    ]
    return sums[0] if len(sums) == 1 else torch.stack([total.double() for total in sums]).sum()


def _finite_part(output: Tensor) -> Tensor:
    """Replace infinity and NaN in an output by 0, through which no gradient flows back.

    An excluded logit is -inf and has no slope: both filling it in (gradient 0) and adding it (gradient 1) are right.
    """
    finite = output.detach().isfinite()
    return output if finite.all() else torch.where(finite, output, 0)


def _observe_meta(candidate: Callable[..., Any], request: Request) -> Observation:
    try:
        results = [_run_on_meta(candidate, request)]
    except (NotImplementedError, RuntimeError, TypeError) as error:
        if not _needs_numbers(error):
            raise
        # Reading numbers (`if mask.any():`) is not a mistake, but the meta device has none.
        results = _run_both_branches(candidate, request)
        if not results:
            # A call also tells the weights that its models have afterwards; only what was returned is asked for here.
            returned = {
                name: leaf
                for name, leaf in _observe_call(candidate, request).outputs.items()
                if name.startswith("output")
            }
            return Observation(outputs=_replace_by_shapes(returned))
    for name, leaf in (item for leaves in results for item in leaves.items()):
        if isinstance(leaf, Tensor) and leaf.device.type != "meta":
            raise WrongResultError(
                f"{result_name(name)} is on the {leaf.device.type.upper()}, although the inputs are on another device"
            )
    return Observation(outputs=_replace_by_shapes(results[0]))


def _replace_by_shapes(leaves: Mapping[str, Any]) -> dict[str, Any]:
    """Return leaves with each tensor replaced by its shape."""
    return {name: tuple(leaf.shape) if isinstance(leaf, Tensor) else leaf for name, leaf in leaves.items()}


def _run_both_branches(candidate: Callable[..., Any], request: Request) -> list[dict[str, Any]]:
    """Return results on the meta device with all conditions true and with all false, where the code succeeds."""
    results = []
    for truth in (True, False):
        try:
            results.append(_run_on_meta(candidate, request, truth))
        except Exception as error:  # the chosen branch may be the one that refuses its input
            if any(phrase in str(error) for phrase in ("on different devices", "on the same device")):
                raise
    return results


def _run_on_meta(candidate: Callable[..., Any], request: Request, truth: bool | None = None) -> dict[str, Any]:
    request = request.map_tensors(lambda tensor: tensor.to("meta"))
    target = prepare_candidate(candidate, request)
    with torch.no_grad(), _OneDevice(truth):
        return flatten_outputs(
            _target_callable(target, request)(
                **request.arguments, **build_fixtures(request.props or {}, request.arguments)
            )
        )


def _needs_numbers(error: BaseException) -> bool:
    """Return whether an error on the meta device means that the code needs numbers or selects by value."""
    if isinstance(error, NeedsNumbersError):
        return True
    reasons = (
        *("cannot be called on meta tensors", "torch.nonzero()", "no fake impl or Meta kernel"),
        "unsupported format string passed to Tensor",
    )
    return any(reason in str(error) for reason in reasons)


def _observe_operations(candidate: Callable[..., Any], request: Request) -> Observation:
    counter, lines = _OperationCounter(), LineCounter()
    observation = _observe_functions(candidate, request, _count_operations_and_lines(counter, lines))
    return replace(observation, operations=counter.count, largest=counter.largest, lines=lines.count)


@contextmanager
def _count_operations_and_lines(counter: _OperationCounter, lines: LineCounter) -> Iterator[None]:
    with counter, lines:
        yield


def _observe_functions(
    candidate: Callable[..., Any], request: Request, counter: AbstractContextManager[Any] | None = None
) -> Observation:
    target = prepare_candidate(candidate, request)
    arguments = map_value(request.arguments, Tensor.clone)
    if isinstance(target, nn.Module):
        target.requires_grad_(False)
    # As in a call, so that the code cannot notice the counting. Code that needs autograd enables it here, too.
    with torch.set_grad_enabled(bool(request.props)), counter or nullcontext():
        result = _target_callable(target, request)(
            **arguments, **build_fixtures(request.props or {}, request.arguments)
        )
    return Observation(outputs=_replace_by_shapes(flatten_outputs(result)))


def _observe_attributes(candidate: Callable[..., Any], request: Request) -> Observation:
    target = prepare_candidate(candidate, request)
    return Observation(outputs={name: getattr(target, name) for name in request.wrt})


_ACTIONS: dict[str, Callable[[Callable[..., Any], Request], Observation]] = {
    "call": _observe_call,
    "gradients": _observe_gradients,
    "meta": _observe_meta,
    "operations": _observe_operations,
    "functions": _observe_functions,
    "attributes": _observe_attributes,
}


class _OperationCounter(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts dispatched ATen operations, and records the size of the largest tensor that they made."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.count = 0
        self.largest = 0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Prevent PyTorch from importing its compiler, which takes a second and is not needed here."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.count += 1
        for leaf in list_tensors(result):
            # A view costs no memory: an expanded tensor counts with its storage.
            if leaf.device.type != "meta":
                self.largest = max(self.largest, leaf.untyped_storage().nbytes() // leaf.element_size())
        return result


# A loop on a condition may run for ever with a guessed value.
_GUESSES = 1_000


class NeedsNumbersError(RuntimeError):
    """A request on the meta device needs numbers, which only other devices have."""


class _OneDevice(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Refuses to combine tensors of two devices, which the meta device itself does only for most operations.

    Args:
        truth: what a condition on the meta device is taken for; None if it is an error to look at one.
    """

    # What PyTorch may combine: copies, indices, and a single number with anything.
    _CROSSING = ("copy_", "_to_copy", "index", "index_put", "index_put_", "_index_put_impl_")

    def __init__(self, truth: bool | None = None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._truth = truth
        self._left = _GUESSES

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Prevent PyTorch from importing its compiler, which takes a second and is not needed here."""
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        operation = func.overloadpacket.__name__
        devices = sorted({tensor.device.type for tensor in list_tensors(args) if tensor.ndim > 0})
        if (
            operation == "_local_scalar_dense"
            and self._truth is not None
            and args[0].is_meta
            and args[0].dtype is torch.bool
        ):
            self._left -= 1
            if self._left < 0:
                raise NeedsNumbersError("a loop that goes on for as long as a condition holds")
            return self._truth
        if _is_length_request(operation, args, kwargs or {}):
            raise NeedsNumbersError(f"{operation} needs lengths, which are on the CPU and are not known here")
        if len(devices) > 1 and operation not in self._CROSSING:
            raise RuntimeError(f"{operation} meets tensors on different devices: {', '.join(devices)}")
        if _copies_to_cpu(operation, args, kwargs or {}):
            # For a look aside at numbers that are not there, any will do; what goes on with them is on the wrong device.
            return torch.zeros(args[0].shape, dtype=args[0].dtype, device="cpu")
        result = compute_on_meta_device(func, args, kwargs or {})
        return func(*args, **(kwargs or {})) if result is NotImplemented else result


def _is_length_request(operation: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Return whether integers or booleans are copied from the meta device, or a sequence is packed.

    PyTorch wants the lengths of a packed sequence on the CPU, wherever the sequence is. Other numbers are on the wrong device there.
    """
    if operation == "_pack_padded_sequence":
        return bool(args[0].is_meta) and not args[1].is_meta
    return _copies_to_cpu(operation, args, kwargs) and not args[0].is_floating_point()


def _copies_to_cpu(operation: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Return whether a tensor is copied from the meta device to the CPU."""
    return operation == "_to_copy" and str(kwargs.get("device")) == "cpu" and bool(args[0].is_meta)


@cache
def _accelerator_module() -> Any:
    """Return PyTorch's module for its accelerator, such as ``torch.cuda``; None without a seedable one."""
    device = torch.accelerator.current_accelerator()
    module = None if device is None else torch.get_device_module(device)
    return module if hasattr(module, "is_initialized") and hasattr(module, "manual_seed_all") else None


@contextmanager
def _seed_random_numbers() -> Iterator[None]:
    """Seed the CPU's random numbers, and restore their state afterwards.

    ``torch.manual_seed`` would also queue a call, with a stack trace, for every kind of device that is not in use.
    """
    before = torch.default_generator.get_state()
    torch.default_generator.manual_seed(0)
    accelerator = _accelerator_module()
    if accelerator is not None and accelerator.is_initialized():
        accelerator.manual_seed_all(0)
    try:
        yield
    finally:
        torch.default_generator.set_state(before)


@contextmanager
def pytorch_defaults() -> Iterator[None]:
    """Run under PyTorch's defaults, and restore the notebook's settings afterwards.

    Reading a setting is much faster than writing it, and settings are rarely changed.
    """
    dtype, autocast = torch.get_default_dtype(), torch.is_autocast_enabled("cpu")
    device = None if _is_default_device_cpu() else torch.get_default_device()
    precision = _matmul_precision()
    if device is not None:
        torch.set_default_device(None)
    if precision != "highest":
        # Some processors and GPUs round the factors of a product to bfloat16 or TF32 then.
        torch.set_float32_matmul_precision("highest")
    _set_defaults(torch.float32, autocast=False)
    try:
        yield
    finally:
        _set_defaults(dtype, autocast=autocast)
        if precision not in ("highest", None):
            torch.set_float32_matmul_precision(precision)
        if device is not None or not _is_default_device_cpu():
            torch.set_default_device(device)


def _matmul_precision() -> str | None:
    """Return the precision of float32 products; None if it differs between backends."""
    try:
        return torch.get_float32_matmul_precision()
    except RuntimeError:
        return None


def _is_default_device_cpu() -> bool:
    return torch.empty(0).is_cpu


def _set_defaults(dtype: torch.dtype, *, autocast: bool) -> None:
    if torch.get_default_dtype() is not dtype:
        torch.set_default_dtype(dtype)
    if torch.is_autocast_enabled("cpu") is not autocast:
        torch.set_autocast_enabled("cpu", autocast)


@contextmanager
def _watch_off_limits(off_limits: Set[CodeType], off_folder: str) -> Iterator[list[str]]:
    """Yield a list that collects messages when Python enters code that is off limits.

    It does not raise: the code could catch the exception, and Python removes a profile function that raises.
    """
    borrowed: list[str] = []
    if not off_limits:
        yield borrowed
        return

    def watch(frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event == "call" and (code in off_limits or (off_folder and code.co_filename.startswith(off_folder))):
            borrowed.append(f"it calls the course's own {code.co_qualname}, which is what you are asked to write")

    before, before_in_threads = sys.getprofile(), threading.getprofile()
    sys.setprofile(watch)
    threading.setprofile(watch)
    try:
        yield borrowed
    finally:
        if sys.getprofile() is not watch:
            borrowed.append("it hides from the check what it calls")
        sys.setprofile(before)
        threading.setprofile(before_in_threads)


def list_code_objects(solution: Callable[..., Any]) -> set[CodeType]:
    """Return the code objects of a function, or of a class's own methods."""
    if inspect.isclass(solution):
        members = [member for member in vars(solution).values() if inspect.isfunction(member)]
        return {member.__code__ for member in members}
    # Within a decorator: the wrapper's own code belongs to PyTorch and is allowed.
    return {inspect.unwrap(solution).__code__}
