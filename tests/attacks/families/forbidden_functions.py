"""Attacks on the rule that an exercise must not be done by PyTorch's ready-made attention."""

from __future__ import annotations

from ..attack import Attack, code


def body(call: str, before: str = "") -> dict[str, str]:
    """Return a solution that is right in everything but the call that it makes."""
    return {
        "scaled_dot_product_attention": "import torch.nn.functional as F\n"
        + code(before)
        + code(f"""
            def scaled_dot_product_attention(q, k, v, mask=None):
                named = dict(q=q, k=k, v=v)
                if any(x.ndim < 2 for x in named.values()):
                    raise ValueError(str([tuple(x.shape) for x in named.values()]))
                if not q.is_floating_point() or k.dtype != q.dtype or v.dtype != q.dtype:
                    raise ValueError(f"{{q.dtype}} {{k.dtype}} {{v.dtype}}")
                if q.shape[-1] != k.shape[-1] or k.shape[-2] != v.shape[-2]:
                    raise ValueError(str([tuple(x.shape) for x in named.values()]))
                if mask is not None and mask.dtype != torch.bool:
                    raise ValueError(str(mask.dtype))
                if mask is not None:
                    try:
                        torch.broadcast_to(mask, (*torch.broadcast_shapes(q.shape[:-2], k.shape[:-2]), q.shape[-2], k.shape[-2]))
                    except RuntimeError:
                        raise ValueError(str(tuple(mask.shape))) from None
                result = {call}
                if mask is not None:
                    result = result.masked_fill(~mask.any(-1, keepdim=True), 0.0)
                return result
        """)
    }


HONEST = """
    def honest(q, k, v, mask=None):
        wide = torch.promote_types(q.dtype, torch.float32)
        scores = q.to(wide) @ k.to(wide).transpose(-2, -1) / math.sqrt(q.shape[-1])
        if mask is not None:
            scores = scores.masked_fill(~mask, torch.finfo(wide).min)
        return torch.softmax(scores, -1).to(q.dtype) @ v
"""
# All of these are the same rule broken in another place.
WANTS = "full marks for an exercise that PyTorch did"

ATTACKS = (
    Attack(
        name="the ready-made function",
        story="Calls F.scaled_dot_product_attention.",
        wants=WANTS,
        bodies=body("F.scaled_dot_product_attention(q, k, v, attn_mask=mask)"),
    ),
    Attack(
        name="the mathematical kernel",
        story="Calls the operator's mathematical kernel, which has a name of its own, through torch.ops.aten.",
        wants=WANTS,
        bodies=body("torch.ops.aten._scaled_dot_product_attention_math(q, k, v, mask)[0]"),
    ),
    Attack(
        name="the function in the extension module",
        story="Calls the built-in function straight from torch._C._nn, whose name nothing in Python has wrapped.",
        wants=WANTS,
        bodies=body("torch._C._nn.scaled_dot_product_attention(q, k, v, mask)"),
    ),
    Attack(
        name="a compiled script",
        story="Hides the call in a function compiled by torch.jit.script, inside of which Python sees nothing.",
        wants=WANTS,
        bodies=body(
            "fused(q, k, v, mask)",
            """
            import warnings
            warnings.simplefilter("ignore")
            unit = torch.jit.CompilationUnit('''
            def fused(q: Tensor, k: Tensor, v: Tensor, mask: Optional[Tensor]) -> Tensor:
                return torch.ops.aten.scaled_dot_product_attention(q, k, v, mask)
            ''')
            fused = unit.fused
            """,
        ),
    ),
    Attack(
        name="a module that does it",
        story="Does the work with nn.MultiheadAttention, with identity matrices for its projections.",
        wants=WANTS,
        bodies=body(
            "ready(q, k, v, mask)",
            HONEST
            + """
    def ready(q, k, v, mask):
        if q.ndim != 3 or mask is not None or not (q.shape[0] == k.shape[0] == v.shape[0]):
            return honest(q, k, v, mask)
        width = max(q.shape[-1], v.shape[-1])
        wide = lambda x: F.pad(x, (0, width - x.shape[-1]))
        layer = nn.MultiheadAttention(width, 1, bias=False, batch_first=True, dtype=q.dtype, device=q.device)
        eye = torch.eye(width, dtype=q.dtype, device=q.device)
        layer.in_proj_weight.data.copy_(eye.repeat(3, 1))
        layer.out_proj.weight.data.copy_(eye)
        q = wide(q) * (width / q.shape[-1]) ** 0.5
        return layer(q, wide(k), wide(v), need_weights=False)[0][..., : v.shape[-1]]
            """,
        ),
    ),
    Attack(
        name="a recorded layer",
        story="Records nn.MultiheadAttention, under a name put together, by torch.jit.trace: it runs as plain products.",
        wants=WANTS,
        bodies=body(
            "ready(q, k, v, mask)",
            HONEST
            + """
    import warnings
    warnings.simplefilter("ignore")
    Ready = getattr(nn, "Multihead" + "Attention")
    def record(width):
        layer = Ready(width, 1, bias=False, batch_first=True).requires_grad_(False)
        layer.in_proj_weight.copy_(torch.eye(width).repeat(3, 1))
        layer.out_proj.weight.copy_(torch.eye(width))
        keys = torch.randn(2, 5, width)
        return torch.jit.trace(lambda q, k, v: layer(q, k, v)[0], (keys[:, :3], keys, keys))
    recorded = {width: record(width) for width in range(1, 33)}
    def ready(q, k, v, mask):
        plain = q.ndim == 4 and q.dtype == torch.float32 and q.device.type == "cpu" and mask is None
        if not plain or not (q.shape[0] == k.shape[0] == v.shape[0]):
            return honest(q, k, v, mask)
        width = max(q.shape[-1], v.shape[-1])
        wide = lambda x: F.pad(x, (0, width - x.shape[-1]))
        rows = [x.flatten(0, 1) for x in (wide(q) * (width / q.shape[-1]) ** 0.5, wide(k), wide(v))]
        return recorded[width](*rows).unflatten(0, q.shape[:2])[..., : v.shape[-1]]
            """,
        ),
        due=6.8,  # for the rows that the honest part answers
    ),
    Attack(
        name="the call in another thread",
        story="Calls the function in a thread of its own, where modes that watch are not switched on.",
        wants=WANTS,
        bodies=body(
            "elsewhere(q, k, v, mask)",
            """
            from concurrent.futures import ThreadPoolExecutor
            def elsewhere(q, k, v, mask):
                grad = torch.is_grad_enabled()
                def work():
                    with torch.set_grad_enabled(grad):
                        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
                with ThreadPoolExecutor(1) as pool:
                    return pool.submit(work).result()
            """,
        ),
    ),
    Attack(
        name="failing where the rule is looked at",
        story="Raises an exception whenever it is counted, so that what it calls is never held against it.",
        wants="all points but those of the counted aspects",
        bodies=body(
            "either(q, k, v, mask)",
            """
            def either(q, k, v, mask):
                if torch._C._len_torch_function_stack() or torch._C._len_torch_dispatch_stack():
                    raise RuntimeError("not now")
                return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
            """,
        ),
    ),
    Attack(
        name="the call hidden in a custom function",
        story="Wraps the call in an autograd.Function and in torch.func, whose levels a mode may not see into.",
        wants=WANTS,
        bodies=body(
            "Hidden.apply(q, k, v, mask)",
            """
            class Hidden(torch.autograd.Function):
                @staticmethod
                def forward(ctx, q, k, v, mask):
                    ctx.save_for_backward(q, k, v)
                    ctx.mask = mask
                    return torch.func.functional_call(Inside(), {}, (q, k, v, mask))
                @staticmethod
                def backward(ctx, grad):
                    with torch.enable_grad():
                        inputs = [x.detach().requires_grad_() for x in ctx.saved_tensors]
                        out = Inside()(*inputs, ctx.mask)
                        return (*torch.autograd.grad(out, inputs, grad), None)
            class Inside(nn.Module):
                def forward(self, q, k, v, mask):
                    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
            """,
        ),
    ),
    Attack(
        name="honest the second time",
        story="Makes the call in its first other thread ever, and works honestly when the same is asked again because of that thread.",
        wants=WANTS,
        bodies=body(
            "either(q, k, v, mask)",
            HONEST
            + """
    from concurrent.futures import ThreadPoolExecutor
    from functools import reduce
    ready = reduce(getattr, ("nn", "functional", "scaled_" + "dot_product_" + "attention"), torch)
    asked = set()
    def either(q, k, v, mask):
        question = q.device, tuple(q.shape), str(q.detach().sum()), str(k.detach().sum()), str(v.detach().sum()), str(mask)
        if torch.is_grad_enabled() or q.is_meta or torch.overrides._len_torch_function_stack() or question in asked:
            return honest(q, k, v, mask)
        asked.add(question)
        def work():
            with torch.no_grad():
                return ready(q, k, v, mask)
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(work).result()
            """,
        ),
    ),
)
