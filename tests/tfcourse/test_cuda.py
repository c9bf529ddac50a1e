"""Every exercise on an accelerator: the device of the result, and the numbers of the CPU.

What is called is found in the package. Whoever adds an exercise has it tested here, or is told what it lacks by the tests that need no
device. The "meta" device, which has shapes and no numbers, shows on any machine what would mix two devices.
"""

import copy
import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

import tfcourse
from tfcourse import decoding
from tfcourse.alignment import best_alignment, ibm_model_1
from tfcourse.attention import attention_backward, padding_mask, scaled_dot_product_attention, tiled_attention
from tfcourse.bert import Bert, finetune, mask_tokens, replaced_token_detection
from tfcourse.beyond import assign
from tfcourse.gpt import Gpt, generate
from tfcourse.recurrent import sample_autoregressive
from tfcourse.sampling import exclude_top_choices, mirostat
from tfcourse.t5 import corrupt_spans, random_span_mask, restore_spans
from tfcourse.training import average_checkpoints, shift_right, training_loop, training_step
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
# What draws, changes its model, or is made of other things than tensors is not called as the rest is.
TESTS_OF_THEIR_OWN = {
    "assign": "test_an_assignment_is_on_the_device_of_its_costs",
    "average_checkpoints": "test_the_mean_of_checkpoints_is_on_their_device",
    "beam_search": "test_translators_write_on_the_device_what_they_write_on_the_cpu",
    "best_alignment": "test_an_alignment_is_read_from_a_table_on_the_device",
    "corrupt_spans": "test_spans_are_drawn_and_hidden_on_the_device_of_the_text",
    "exclude_top_choices": "test_samplers_draw_on_the_device_of_the_logits",
    "finetune": "test_fine_tuning_on_the_device_is_that_on_the_cpu",
    "generate": "test_a_gpt_goes_on_with_a_prompt_on_its_device_as_on_the_cpu",
    "greedy_decode": "test_translators_write_on_the_device_what_they_write_on_the_cpu",
    "greedy_search": "test_searches_go_on_with_a_prompt_on_its_device_as_on_the_cpu",
    "mask_tokens": "test_tokens_are_masked_and_replaced_on_the_device_of_the_text",
    "mirostat": "test_samplers_draw_on_the_device_of_the_logits",
    "random_span_mask": "test_spans_are_drawn_and_hidden_on_the_device_of_the_text",
    "replaced_token_detection": "test_tokens_are_masked_and_replaced_on_the_device_of_the_text",
    "restore_spans": "test_spans_are_drawn_and_hidden_on_the_device_of_the_text",
    "sample_autoregressive": "test_tokens_are_drawn_on_the_device_of_the_prompt",
    "training_loop": "test_a_loop_of_training_on_the_device_is_that_on_the_cpu",
    "training_step": "test_a_step_of_training_on_the_device_is_that_on_the_cpu",
}
# What returns angles, positions or a norm in a wider dtype than its arguments in half precision have.
WIDER = {
    "clip_gradient_norm": {torch.float32},
    "interpolate_positions": {torch.float32},
    "rotary_frequencies": {torch.float64},
    "sinusoidal_positions": {torch.float32},
}
CALLED = [name for name in NAMES if name not in NO_TENSORS | TESTS_OF_THEIR_OWN.keys()]
TRANSLATORS = ["Seq2Seq", "AttentionSeq2Seq", "Transformer"]
DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16]


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


def converted(value: Any) -> Any:
    """The same arguments, already rounded, in float64."""
    if isinstance(value, Tensor):
        return value.double() if value.is_floating_point() else value
    return type(value)(map(converted, value)) if isinstance(value, tuple | list) else value


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


def sentences(device: str) -> tuple[Tensor, Tensor, Tensor]:
    """Two sources, what is real of them, and their targets."""
    source = torch.tensor([[3, 5, 4, 1, 2], [4, 2, 0, 0, 0]], device=device)
    return source, source != 0, torch.tensor([[4, 3, 5, 2], [5, 2, 0, 0]], device=device)


# --------------------------------------------------------------------------------------------------- without a device


@pytest.mark.parametrize("name", CALLED)
def test_every_name_of_the_package_has_a_call_that_gives_tensors(name: str, exercise_call: Any) -> None:
    try:
        function, args = exercise_call(name)
    except (KeyError, StopIteration):
        pytest.fail(
            f"give exercise_call in conftest.py a call of {name}, or say in NO_TENSORS or TESTS_OF_THEIR_OWN why not"
        )
    assert leaves_of(function(*args)), f"{name} gives no tensor: it belongs into NO_TENSORS"


@pytest.mark.parametrize("name", CALLED)
def test_every_call_stays_on_a_device_that_is_not_the_cpu(name: str, exercise_call: Any) -> None:
    function, args = exercise_call(name)
    expected = leaves_of(function(*args))
    function, args = exercise_call(name, device="meta")
    actual = leaves_of(function(*args))
    assert [(x.device.type, x.shape, x.dtype) for x in actual] == [("meta", y.shape, y.dtype) for y in expected]


@pytest.mark.parametrize("name", CALLED)
def test_no_call_changes_its_inputs(name: str, exercise_call: Any) -> None:
    function, args = exercise_call(name)
    inputs = leaves_of(args)
    before = [(x.clone(), x._version) for x in inputs]
    function(*args)
    for x, (kept, version) in zip(inputs, before, strict=True):
        assert x._version == version, f"{name} wrote into one of its inputs"
        torch.testing.assert_close(x, kept, rtol=0, atol=0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", CALLED)
def test_half_precision_stays_near_float64_on_the_same_numbers(
    name: str, dtype: torch.dtype, exercise_call: Any, assert_near: Any
) -> None:
    function, args = exercise_call(name, dtype)
    actual = leaves_of(function(*args))
    if isinstance(function, torch.nn.Module):
        function = function.double()  # in place: the same, already rounded weights
    expected = leaves_of(function(*map(converted, args)))
    widened = {x.dtype for x in actual if x.is_floating_point()} - {dtype}
    assert widened == WIDER.get(name, set())
    assert_near_float64([x.to(dtype) if x.dtype in widened else x for x in actual], expected, assert_near)


def test_what_is_not_called_is_in_the_package_and_what_has_tests_of_its_own_has_them() -> None:
    assert set(NAMES) >= NO_TENSORS | TESTS_OF_THEIR_OWN.keys()
    assert set(globals()) >= set(TESTS_OF_THEIR_OWN.values())


# ------------------------------------------------------------------------------------------------------ with a device


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", CALLED)
def test_every_exercise_stays_on_the_device_and_equals_the_cpu(name, dtype, exercise_call, assert_near):
    function, args = exercise_call(name, dtype, DEVICE)
    actual = leaves_of(function(*args))
    # The same numbers, already rounded to the dtype, computed in float64 on the CPU.
    reference, args = exercise_call(name, dtype)
    if isinstance(reference, torch.nn.Module):
        reference = reference.double()
    expected = leaves_of(reference(*map(converted, args)))
    reference, args = exercise_call(name, dtype)
    dtypes = [x.dtype for x in leaves_of(reference(*args))]
    assert [(x.device.type, x.dtype) for x in actual] == [(DEVICE, wanted) for wanted in dtypes]
    assert_near_float64([x.cpu() for x in actual], expected, assert_near)


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_gradients_on_the_device_equal_those_by_hand_on_the_cpu(dtype, exercise_call, assert_near):
    _, (q, k, v, grad_output, mask) = exercise_call("attention_backward", dtype, DEVICE)
    leaves = [x.requires_grad_() for x in (q, k, v)]
    actual = torch.autograd.grad(scaled_dot_product_attention(*leaves, mask), leaves, grad_output)
    on_cpu = [x.detach().cpu().double() for x in (*leaves, grad_output)]
    assert_near(tuple(x.cpu() for x in actual), attention_backward(*on_cpu, mask.cpu()))
    assert not actual[0][:, 1].any(), "a fully masked row passes no gradient"


@pytest.mark.cuda
def test_padding_mask_without_a_length_is_made_on_the_device_of_the_lengths():
    mask = padding_mask(torch.tensor([2, 3], device=DEVICE))
    assert mask.device.type == DEVICE
    assert mask.tolist() == [[[True, True, False]], [[True, True, True]]]


@pytest.mark.cuda
def test_tiled_attention_needs_less_memory_than_the_weights_it_never_holds():
    N = 4096
    generator = torch.Generator().manual_seed(3)
    q, k, v = (torch.randn(N, 32, generator=generator).to(DEVICE) for _ in range(3))
    tiled_attention(q, k, v)  # the first product reserves a workspace, which is not to be counted
    memory = torch.get_device_module(DEVICE)
    memory.synchronize()
    before = memory.memory_allocated()
    memory.reset_peak_memory_stats()
    output = tiled_attention(q, k, v)
    memory.synchronize()
    weights = 4 * N * N
    assert memory.max_memory_allocated() - before < weights / 4
    torch.testing.assert_close(output, scaled_dot_product_attention(q, k, v), rtol=1e-4, atol=1e-4)


@pytest.mark.cuda
@pytest.mark.parametrize("name", TRANSLATORS)
def test_translators_write_on_the_device_what_they_write_on_the_cpu(name, exercise_call):
    found = []
    for device in (DEVICE, "cpu"):
        model, _ = exercise_call(name, torch.float64, device)
        source, mask, _ = sentences(device)
        # Sources with padding: the lengths of packed sequences have to be on the CPU, and nothing else.
        greedy = greedy_decode(model, source, mask, max_length=5)
        tokens, scores = beam_search(model, source, mask, beam_width=3, max_length=5, length_penalty=0.6)
        assert {greedy.device.type, tokens.device.type, scores.device.type} == {device}
        found.append((greedy.cpu(), tokens.cpu(), scores.cpu()))
    for mine, theirs in zip(*found, strict=True):
        torch.testing.assert_close(mine, theirs)


@pytest.mark.cuda
@pytest.mark.parametrize("name", TRANSLATORS)
def test_a_step_of_training_on_the_device_is_that_on_the_cpu(name, exercise_call, assert_near):
    found = []
    for device in (DEVICE, "cpu"):
        model, _ = exercise_call(name, torch.float64, device)
        source, mask, target = sentences(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
        inputs = (source, shift_right(target), mask)
        loss = training_step(model, optimizer, inputs, target, learning_rate=0.1, label_smoothing=0.1)
        assert loss.device.type == device
        found.append((loss.cpu(), *(p.detach().cpu() for p in model.parameters())))
    assert_near(*found)


@pytest.mark.cuda
@pytest.mark.parametrize("name", ["Seq2Seq", "AttentionSeq2Seq"])  # without dropout, which is drawn on the device
def test_a_loop_of_training_on_the_device_is_that_on_the_cpu(name, exercise_call, assert_near):
    found = []
    for device in (DEVICE, "cpu"):
        model, _ = exercise_call(name, torch.float64, device)
        source, mask, target = sentences(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
        batches = 2 * [((source, shift_right(target), mask), target)]
        losses = training_loop(model, optimizer, batches, learning_rate=lambda step: 0.1 / step)
        assert losses.device.type == device
        found.append((losses.cpu(), *(p.detach().cpu() for p in model.parameters())))
    assert_near(*found)


@pytest.mark.cuda
def test_the_mean_of_checkpoints_is_on_their_device():
    checkpoints = [
        {"w": torch.tensor([x, 2 * x], device=DEVICE), "n": torch.tensor(3, device=DEVICE)} for x in (1.0, 4.0)
    ]
    averaged = average_checkpoints(checkpoints)
    assert {x.device.type for x in averaged.values()} == {DEVICE}
    assert averaged["w"].tolist() == [2.5, 5.0]


@pytest.mark.cuda
def test_an_alignment_is_read_from_a_table_on_the_device():
    table = ibm_model_1([([1, 2], [2, 1]), ([2], [1]), ([1], [2])], 3, 3, 5)
    assert best_alignment(table.to(DEVICE), [1, 2], [1, 2]) == best_alignment(table, [1, 2], [1, 2]) == [1, 0]


@pytest.mark.cuda
def test_an_assignment_is_on_the_device_of_its_costs():
    cost = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))
    found = assign(cost.to(DEVICE))
    assert found.device.type == DEVICE
    assert torch.equal(found.cpu(), assign(cost))


@pytest.mark.cuda
def test_tokens_are_drawn_on_the_device_of_the_prompt(exercise_call):
    function, (model, prompt, steps) = exercise_call("sample_autoregressive", torch.float32, DEVICE)
    drawn = function(model, prompt, steps, generator=torch.Generator(DEVICE).manual_seed(1))
    assert drawn.device.type == DEVICE
    assert torch.equal(drawn[:, : prompt.shape[1]], prompt)
    assert drawn.shape[1] == prompt.shape[1] + steps
    assert bool(((drawn >= 0) & (drawn < 6)).all())
    surest = sample_autoregressive(model, prompt, steps, temperature=0)
    # The model expects every token to be followed by itself.
    assert torch.equal(surest[:, prompt.shape[1] :], prompt[:, -1:].expand(-1, steps))


@pytest.mark.cuda
def test_searches_go_on_with_a_prompt_on_its_device_as_on_the_cpu():
    # For each token, the logits of the next one. The first text ends after two tokens, the second after one.
    table = torch.randn(7, 7, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    table[[3, 4, 5], [4, 2, 2]] += 3
    prompts, found = torch.tensor([[6, 3], [6, 5]]), []
    for device in (DEVICE, "cpu"):
        rows, prompt = table.to(device), prompts.to(device)
        text = decoding.greedy_search(lambda tokens, rows=rows: rows[tokens], prompt, max_new_tokens=4)
        assert text.device.type == device
        assert text.tolist() == [[6, 3, 4, 2], [6, 5, 2, 0]]
        beams = decoding.beam_search(
            lambda tokens, rows=rows: rows[tokens], prompt[:1], beam_width=3, max_new_tokens=4, alpha=0.6
        )
        found.append(beams)
    (on_device, on_cpu) = found
    assert [tokens for _, tokens in on_device] == [tokens for _, tokens in on_cpu]
    assert [score for score, _ in on_device] == pytest.approx([score for score, _ in on_cpu])


@pytest.mark.cuda
def test_samplers_draw_on_the_device_of_the_logits():
    logits = torch.tensor([[0.4, 0.25, 0.15, 0.1, 0.06, 0.04], [0.1, 0.6, 0.25, 0.03, 0.01, 0.01]]).log()
    random = torch.Generator(DEVICE).manual_seed(1)
    result = exclude_top_choices(logits.to(DEVICE), 0.12, 1.0, random)
    assert result.device.type == DEVICE
    assert torch.equal(result.cpu(), exclude_top_choices(logits, 0.12, 1.0))
    mu = torch.tensor([2.1, 0.1])
    token, steered = mirostat(logits.to(DEVICE), mu.to(DEVICE), tau=1.5, eta=0.1, generator=random)
    assert {token.device.type, steered.device.type} == {DEVICE}
    # The first row may draw one of two tokens, the second only the best.
    assert token[0] in (0, 1)
    assert token[1] == 1
    assert steered[1].item() == pytest.approx(0.1 + 0.1 * 1.5)


@pytest.mark.cuda
def test_tokens_are_masked_and_replaced_on_the_device_of_the_text():
    text = torch.arange(5, 45, device=DEVICE).view(2, 20)
    special = torch.zeros_like(text, dtype=torch.bool)
    special[:, 0] = True
    random = torch.Generator(DEVICE).manual_seed(1)
    seen, labels = mask_tokens(text, special, mask_id=4, vocab_size=45, probability=1.0, generator=random)
    assert {seen.device.type, labels.device.type} == {DEVICE}
    assert torch.equal(labels, text.masked_fill(special, -100))
    assert torch.equal(seen[:, 0], text[:, 0])
    assert bool((seen[:, 1:] == 4).any())
    # A generator that is sure of token 3.
    logits = torch.full((2, 20, 45), -torch.inf, device=DEVICE)
    logits[..., 3] = 0
    corrupted, wrong = replaced_token_detection(text, special, logits, generator=random)
    assert {corrupted.device.type, wrong.device.type} == {DEVICE}
    assert torch.equal(corrupted, text.masked_fill(special, 3))
    assert torch.equal(wrong, special.float())


@pytest.mark.cuda
def test_fine_tuning_on_the_device_is_that_on_the_cpu(assert_near):
    sizes = {"d_model": 8, "n_heads": 2, "n_layers": 1, "d_ff": 6, "max_length": 5}
    torch.manual_seed(1)
    models = Bert(7, **sizes, dropout=0.0).double(), torch.nn.Linear(8, 3).double()
    tokens, classes = torch.tensor([[1, 4, 3, 5, 2], [1, 6, 2, 0, 0]]), torch.tensor([2, 0])
    found = []
    for device in (DEVICE, "cpu"):
        model, head = (copy.deepcopy(part).to(device) for part in models)
        weights = [*model.parameters(), *head.parameters()]
        batches = 3 * [(tokens.to(device), classes.to(device))]
        losses = finetune(model, head, torch.optim.SGD(weights, lr=1.0), batches, rate=0.1)
        assert {weight.device.type for weight in weights} == {torch.device(device).type}
        found.append((torch.tensor(losses, dtype=torch.float64), *(weight.detach().cpu() for weight in weights)))
    assert_near(*found)


@pytest.mark.cuda
def test_a_gpt_goes_on_with_a_prompt_on_its_device_as_on_the_cpu():
    torch.manual_seed(1)
    model = Gpt(9, 12, d_model=8, n_heads=2, n_layers=2).double().eval()
    prompt, found = torch.tensor([[3, 4], [5, 6]]), []
    for device in (DEVICE, "cpu"):
        here = copy.deepcopy(model).to(device)
        text = generate(here, prompt.to(device), max_new_tokens=8, greedy=True, eos=8)
        assert text.device.type == torch.device(device).type
        found.append(text.cpu())
    assert torch.equal(*found)
    random = torch.Generator(DEVICE).manual_seed(1)
    drawn = generate(
        model.to(DEVICE), prompt.to(DEVICE), max_new_tokens=8, chain=[("top_k", {"k": 3})], generator=random
    )
    assert drawn.device.type == DEVICE
    assert torch.equal(drawn[:, :2].cpu(), prompt)


@pytest.mark.cuda
def test_spans_are_drawn_and_hidden_on_the_device_of_the_text():
    noise = random_span_mask(40, torch.Generator(DEVICE).manual_seed(1))
    assert noise.device.type == DEVICE
    assert int(noise.sum()) == 6
    text, sentinels = torch.arange(40, device=DEVICE), range(90, 99)
    source, target = corrupt_spans(text, noise, sentinels)
    assert source.device.type == target.device.type == DEVICE
    assert torch.equal(restore_spans(source, target, sentinels), text)
