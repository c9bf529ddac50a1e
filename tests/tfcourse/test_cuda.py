"""Every exercise on an accelerator: the device of the result, and the numbers of the CPU.

What is called is found in the package. Whoever adds an exercise has it tested here, or is told what it lacks by the tests that need no
device. The "meta" device, which has shapes and no numbers, shows on any machine what would mix two devices.
"""

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

import tfcourse
from tfcourse import decoding
from tfcourse.alignment import AttentionSeq2Seq, best_alignment, ibm_model_1
from tfcourse.attention import padding_mask, scaled_dot_product_attention
from tfcourse.bert import Bert, finetune, mask_tokens, replaced_token_detection
from tfcourse.beyond import assign
from tfcourse.gpt import Gpt, generate
from tfcourse.recurrent import sample_autoregressive
from tfcourse.sampling import exclude_top_choices, mirostat
from tfcourse.seq2seq import Seq2Seq
from tfcourse.t5 import corrupt_spans, random_span_mask, restore_spans
from tfcourse.training import average_checkpoints, shift_right, training_loop, training_step
from tfcourse.transformer import Transformer
from tfcourse.translation import beam_search, greedy_decode

# Where there is no CUDA, these tests run on the pretend accelerator of tests/pretend/.
DEVICE = "cuda" if torch.cuda.is_available() else "pretend"
# Texts, pictures and pages: what they make is on the CPU, whatever it is made of.
NO_EXERCISES = {"data", "dtypes", "lessons", "number_names", "pretrained"}
MODULES = [
    importlib.import_module(f"tfcourse.{info.name}")
    for info in pkgutil.iter_modules(tfcourse.__path__)
    if info.name not in NO_EXERCISES
]
NAMES = [name for module in MODULES for name in module.__all__]
# Numbers, texts, tables of names, records of tensors, and what is given numbers or lists alone and makes its table on the CPU.
NO_TENSORS = {
    "AttentionCost",
    "AttentionParameters",
    "BESIROGLU_2024",
    "BertParameters",
    "DecodeCost",
    "GptParameters",
    "HOFFMANN_2022",
    "Latency",
    "LlamaParameters",
    "LstmWeights",
    "SCORES",
    "T5Parameters",
    "Translations",
    "VitParameters",
    "alibi_slopes",
    "attention_cost",
    "attention_parameters",
    "bert_parameters",
    "best_pair",
    "bits_per_byte",
    "bpe_encode",
    "byte_characters",
    "chinchilla_loss",
    "chinchilla_optimal",
    "decode_cost",
    "decode_ids",
    "discriminative_rates",
    "encode_text",
    "gpt_parameters",
    "ibm_model_1",
    "inference_latency",
    "kv_cache_bytes",
    "largest_batch",
    "length_penalty",
    "linear_warmup_rate",
    "llama_parameters",
    "merge_pair",
    "noam_learning_rate",
    "ntk_theta",
    "pre_tokenize",
    "score_to_text",
    "slanted_triangular_rate",
    "t5_parameters",
    "train_bpe",
    "training_flops",
    "unigram_segment",
    "vit_parameters",
    "wordpiece_encode",
}
# What draws, changes its model, or is made of other things than tensors is not called as the rest is, but by RUNS.
CALLED_OTHERWISE = {
    *(
        "assign",
        "average_checkpoints",
        "beam_search",
        "best_alignment",
        "corrupt_spans",
        "exclude_top_choices",
        "finetune",
    ),
    *("generate", "greedy_decode", "greedy_search", "mask_tokens", "mirostat", "random_span_mask", "restore_spans"),
    *("replaced_token_detection", "sample_autoregressive", "training_loop", "training_step"),
}
# What returns angles, positions or a norm in a wider dtype than its arguments in half precision have.
WIDER = {
    "clip_gradient_norm": {torch.float32},
    "interpolate_positions": {torch.float32},
    "rotary_frequencies": {torch.float64},
    "sinusoidal_positions": {torch.float32},
}
# Packed sequences need the lengths on the CPU, so that they cannot do without numbers.
LENGTHS_ON_THE_CPU = {"Seq2Seq"}
CALLED = [name for name in NAMES if name not in NO_TENSORS | CALLED_OTHERWISE]


@pytest.fixture(autouse=True)
def _all_bits() -> Iterator[None]:
    """Unless told otherwise, cuDNN computes recurrent networks in TF32: 10 bits, where float32 has 23."""
    with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        yield


def leaves_of(value: Any) -> list[Tensor]:
    """The tensors in a nested result."""
    if isinstance(value, Tensor):
        return [value]
    return [leaf for item in value for leaf in leaves_of(item)] if isinstance(value, tuple | list) else []


def assert_near_float64(actual: list[Tensor], expected: list[Tensor], assert_near: Any) -> None:
    """Compare results with those in float64, relative to the largest number: sums of products are not of order one."""
    for x, y in zip(actual, expected, strict=True):
        if x.is_floating_point():
            finite = y.isfinite()  # What is excluded is minus infinity.
            assert torch.equal(x.isfinite(), finite)
            largest = float(y.detach()[finite].abs().max())  # a tensor would widen results without dimensions
            assert_near(x[finite] / largest, y[finite] / largest)
        else:
            assert torch.equal(x, y)


# --------------------------------------------------------------------------------------------------- without a device


@pytest.mark.parametrize("name", CALLED)
def test_every_name_has_a_call_that_stays_on_its_device_and_leaves_its_inputs_alone(
    name: str, exercise_call: Any
) -> None:
    function, args = exercise_call(name)
    inputs = leaves_of(args)
    before = [(x.clone(), x._version) for x in inputs]
    expected = leaves_of(function(*args))
    assert expected, f"{name} gives no tensor: it belongs into NO_TENSORS"
    for x, (kept, version) in zip(inputs, before, strict=True):
        assert x._version == version, f"{name} wrote into one of its inputs"
        torch.testing.assert_close(x, kept, rtol=0, atol=0)
    if name not in LENGTHS_ON_THE_CPU:
        function, args = exercise_call(name, device="meta")
        actual = leaves_of(function(*args))
        assert [(x.device.type, x.shape, x.dtype) for x in actual] == [("meta", y.shape, y.dtype) for y in expected]


@pytest.mark.parametrize("name", CALLED)
def test_half_precision_stays_near_float64_on_the_same_numbers(name: str, exercise_call: Any, assert_near: Any) -> None:
    (function, args), (wide, wide_args) = (
        exercise_call(name, dtype, rounded=torch.float16) for dtype in (torch.float16, torch.float64)
    )
    actual, expected = leaves_of(function(*args)), leaves_of(wide(*wide_args))
    widened = {x.dtype for x in actual if x.is_floating_point()} - {torch.float16}
    assert widened == WIDER.get(name, set())
    assert_near_float64([x.half() if x.dtype in widened else x for x in actual], expected, assert_near)


# ------------------------------------------------------------------------------------------------------ with a device


@pytest.mark.cuda
@pytest.mark.parametrize("name", CALLED)
def test_every_exercise_stays_on_the_device_and_equals_the_cpu(name, exercise_call, assert_near):
    # The same numbers, rounded to float32, in float64 on the CPU.
    (function, args), (here, here_args), (wide, wide_args) = (
        exercise_call(name, dtype, device, rounded=torch.float32)
        for dtype, device in ((torch.float32, DEVICE), (torch.float32, "cpu"), (torch.float64, "cpu"))
    )
    actual, dtypes = leaves_of(function(*args)), [x.dtype for x in leaves_of(here(*here_args))]
    assert [(x.device.type, x.dtype) for x in actual] == [(DEVICE, dtype) for dtype in dtypes]
    assert_near_float64([x.cpu() for x in actual], leaves_of(wide(*wide_args)), assert_near)


SOURCE, TARGET = torch.tensor([[3, 5, 4, 1, 2], [4, 2, 0, 0, 0]]), torch.tensor([[4, 3, 5, 2], [5, 2, 0, 0]])
TABLE = torch.randn(7, 7, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
TRANSLATORS = {
    "Seq2Seq": lambda: Seq2Seq(6, 7, 4, 5, n_layers=2),
    "AttentionSeq2Seq": lambda: AttentionSeq2Seq(6, 6, 3, 4, score="general"),
    "Transformer": lambda: Transformer(7, 7, d_model=6, n_heads=2, d_ff=8, n_layers=1, dropout=0.0),
}


def made(make: Callable[[], torch.nn.Module], device: str) -> Any:
    """A model in float64 with the same weights on every device."""
    torch.manual_seed(1)
    return make().double().to(device)


def translated(name: str, device: str) -> Any:
    """Translations of sources with padding: the lengths of packed sequences have to be on the CPU, and nothing else."""
    model, source = made(TRANSLATORS[name], device).eval(), SOURCE.to(device)
    return greedy_decode(model, source, source != 0, max_length=5), *beam_search(
        model, source, source != 0, beam_width=3, max_length=5, length_penalty=0.6
    )


def trained(name: str, device: str) -> Any:
    """The losses and the weights after a step and after a loop."""
    model, source, target = made(TRANSLATORS[name], device), SOURCE.to(device), TARGET.to(device)
    optimizer, inputs = torch.optim.SGD(model.parameters(), lr=1.0), (source, shift_right(target), source != 0)
    loss = training_step(model, optimizer, inputs, target, learning_rate=0.1, label_smoothing=0.1)
    losses = training_loop(model, optimizer, 2 * [(inputs, target)], learning_rate=lambda step: 0.1 / step)
    averaged = average_checkpoints([model.state_dict(), {key: 3 * x for key, x in model.state_dict().items()}])
    return loss, losses, *model.parameters(), *averaged.values()


def tuned(device: str) -> Any:
    """The losses and the weights after fine-tuning."""
    model = made(lambda: Bert(7, d_model=8, n_heads=2, n_layers=1, d_ff=6, max_length=5, dropout=0.0), device)
    head = made(lambda: torch.nn.Linear(8, 3), device)
    weights = [*model.parameters(), *head.parameters()]
    batches = 3 * [(SOURCE.to(device), torch.tensor([2, 0], device=device))]
    losses = finetune(model, head, torch.optim.SGD(weights, lr=1.0), batches, rate=0.1)
    return torch.tensor(losses, device=device, dtype=torch.float64), *weights


def searched(device: str) -> Any:
    """The texts of the searches; greedy ones that end, and beams with their scores."""
    rows, prompt = TABLE.to(device), torch.tensor([[6, 3], [6, 5]], device=device)
    greedy = decoding.greedy_search(lambda tokens: rows[tokens], prompt, max_new_tokens=4)
    beams = decoding.beam_search(lambda tokens: rows[tokens], prompt[:1], beam_width=3, max_new_tokens=4, alpha=0.6)
    model = made(lambda: Gpt(9, 12, d_model=8, n_heads=2, n_layers=2), device).eval()
    written = generate(model, prompt, max_new_tokens=8, greedy=True, eos=8)
    surest = sample_autoregressive(lambda tokens: rows[tokens], prompt, 3, temperature=0)
    return greedy, written, surest, [torch.tensor([score, *text], device=device) for score, text in beams]


def drawn(device: str) -> Any:
    """What is drawn by a generator on the device where only one thing can be drawn."""
    random, text = torch.Generator(device).manual_seed(1), torch.arange(5, 45, device=device).view(2, 20)
    logits = torch.tensor([[0.4, 0.25, 0.15, 0.1, 0.06, 0.04], [0.1, 0.6, 0.25, 0.03, 0.01, 0.01]], device=device).log()
    mu, sure = torch.tensor([1.4, 0.1], device=device), torch.full((2, 20, 45), -torch.inf, device=device)
    sure[..., 3] = 0
    special = text % 20 == 5
    seen, labels = mask_tokens(text, special, mask_id=4, vocab_size=5, probability=1.0, generator=random)
    noise = random_span_mask(40, random)
    source, target = corrupt_spans(text.flatten(), noise, range(90, 99))
    assert seen.device == source.device == target.device == noise.device == text.device
    return (
        exclude_top_choices(logits, 0.12, 1.0, random),
        *mirostat(logits, mu, tau=1.5, eta=0.1, generator=random),
        *(labels, noise.sum(), restore_spans(source, target, range(90, 99))),
        *replaced_token_detection(text, special, sure, generator=random),
        generate(
            made(lambda: Gpt(9, 12, d_model=8, n_heads=2, n_layers=1), device),
            logits[:, :2].long().abs(),
            max_new_tokens=3,
            chain=[("top_k", {"k": 1})],
            generator=random,
        ),
    )


def aligned(device: str) -> Any:
    """An alignment, an assignment, and the gradients of attention with a row in which all is masked."""
    table = ibm_model_1([([1, 2], [2, 1]), ([2], [1]), ([1], [2])], 3, 3, 5).to(device)
    q, k, v = (TABLE[rows].to(device).requires_grad_() for rows in ([0, 1], [2, 3, 4], [4, 5, 6]))
    mask = torch.tensor([[True, False, True], [False, False, False]], device=device)
    gradients = torch.autograd.grad(scaled_dot_product_attention(q, k, v, mask).square().sum(), (q, k, v))
    places = torch.tensor(best_alignment(table, [1, 2], [1, 2]), device=device)
    return places, assign(TABLE[:, :4].to(device)), padding_mask(torch.tensor([2, 3], device=device)), *gradients


RUNS: dict[str, Callable[[str], Any]] = {
    **{f"{name} translates": partial(translated, name) for name in TRANSLATORS},
    **{f"{name} is trained": partial(trained, name) for name in TRANSLATORS},
    **{"fine-tuning": tuned, "searches": searched, "draws": drawn, "alignments": aligned},
}


@pytest.mark.cuda
@pytest.mark.parametrize("name", RUNS)
def test_what_is_called_otherwise_does_on_the_device_what_it_does_on_the_cpu(name, assert_near):
    there, here = (leaves_of(RUNS[name](device)) for device in (DEVICE, "cpu"))
    assert {x.device.type for x in there} == {DEVICE}
    for x, y in zip(there, here, strict=True):
        assert x.dtype == y.dtype
        assert_near(x.detach().cpu(), y.detach()) if x.is_floating_point() else torch.testing.assert_close(x.cpu(), y)
