"""Attacks on the rule that an exercise must not be done by PyTorch's ready-made attention."""

from __future__ import annotations

from textwrap import indent

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
# Honest while the rules are looked at; after that the call is made in another thread.
LATER = """
    from concurrent.futures import ThreadPoolExecutor
    calls = [0]
    def later(q, k, v, mask):
        calls[0] += 1
        if calls[0] <= 4:
            return honest(q, k, v, mask)
        grad = torch.is_grad_enabled()
        def work():
            with torch.set_grad_enabled(grad):
                return ready(q, k, v, attn_mask=mask)
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(work).result()
"""
# Honest where somebody looks, by whatever a route has found to ask.
EITHER = """
    def either(q, k, v, mask):
        if watched(q):
            return honest(q, k, v, mask)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
"""


def hidden(name: str, story: str, route: str, cell: str = "") -> Attack:
    """Return an attack whose route to the watching is written so that a reader of code may miss it."""
    return Attack(
        name=name,
        story=story,
        wants=WANTS,
        cells=(cell,) if cell else (),
        bodies=body("either(q, k, v, mask)", HONEST + indent(code(route), "    ") + EITHER),
    )


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
        name="the ready-made function by another name",
        story="Gets the function with getattr and a name put together from pieces.",
        wants=WANTS,
        bodies=body(
            'getattr(F, "scaled_" + "dot_" + "product_" + "atten" + "tion")(q, k, v, **{"attn_" + "mask": mask})'
        ),
    ),
    Attack(
        name="the operator below the function",
        story="Calls the composed operator through torch.ops.aten.",
        wants=WANTS,
        bodies=body("torch.ops.aten.scaled_dot_product_attention(q, k, v, mask)"),
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
        name="watching switched off",
        story="Makes the call with PyTorch's function modes disabled.",
        wants=WANTS,
        bodies=body(
            "unseen(q, k, v, mask)",
            """
            def unseen(q, k, v, mask):
                with torch._C.DisableTorchFunction():
                    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
            """,
        ),
    ),
    Attack(
        name="both kinds of watching switched off",
        story="Takes the dispatch modes off the stack as well before it makes the call, and puts them back.",
        wants=WANTS,
        bodies=body(
            "unseen(q, k, v, mask)",
            """
            from torch.utils._python_dispatch import _disable_current_modes
            def unseen(q, k, v, mask):
                with torch._C.DisableTorchFunction(), _disable_current_modes():
                    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
            """,
        ),
    ),
    Attack(
        name="only when nobody counts",
        story="Makes the forbidden call only when no mode is active, and works honestly when one is.",
        wants=WANTS,
        bodies=body(
            "either(q, k, v, mask)",
            HONEST
            + """
    def either(q, k, v, mask):
        watched = torch._C._len_torch_function_stack() or torch._C._len_torch_dispatch_stack()
        if watched:
            return honest(q, k, v, mask)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
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
        name="told by the sizes",
        story="Works honestly on the first calls and on sizes that look like the rule's, and makes the forbidden call on all others.",
        wants=WANTS,
        bodies=body(
            "either(q, k, v, mask)",
            HONEST
            + """
    calls = [0]
    def either(q, k, v, mask):
        calls[0] += 1
        if calls[0] <= 4:
            return honest(q, k, v, mask)
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
        name="a definition under a condition",
        story="Defines what makes the call under try, with and if, where whoever reads only definitions at the top does not look.",
        wants=WANTS,
        bodies=body(
            "later(q, k, v, mask)",
            HONEST
            + LATER
            + """
    try:
        with torch.no_grad():
            if calls:
                def ready(q, k, v, attn_mask):
                    return F.scaled_dot_product_attention(q, k, v, attn_mask)
    finally:
        pass
            """,
        ),
    ),
    Attack(
        name="a definition in a loop",
        story="Lets a loop over a list of one function give that function to what is defined in the loop.",
        wants=WANTS,
        bodies=body(
            "later(q, k, v, mask)",
            HONEST
            + LATER
            + """
    for function in [F.scaled_dot_product_attention]:
        def ready(q, k, v, attn_mask):
            return function(q, k, v, attn_mask)
            """,
        ),
    ),
    Attack(
        name="a name given on the way",
        story="Gives a name to a lambda that makes the call in the middle of another expression.",
        wants=WANTS,
        bodies=body(
            "later(q, k, v, mask)",
            HONEST
            + LATER
            + """
    print(callable(ready := lambda q, k, v, attn_mask: F.scaled_dot_product_attention(q, k, v, attn_mask)))
            """,
        ),
    ),
    Attack(
        name="a function put away by a call",
        story="Appends the function to a list and sets it on a class, with no assignment that names it.",
        wants=WANTS,
        bodies=body(
            "later(q, k, v, mask)",
            HONEST
            + LATER
            + """
    class Box:
        pass
    kept = []
    kept.append(F.scaled_dot_product_attention)
    setattr(Box, "kept", kept)
    def ready(q, k, v, attn_mask):
        return Box.kept[0](q, k, v, attn_mask)
            """,
        ),
    ),
    Attack(
        name="a loop's variable",
        story="Lets a loop, a context and a pattern hand the function on from name to name.",
        wants=WANTS,
        bodies=body(
            "later(q, k, v, mask)",
            HONEST
            + LATER
            + """
    import contextlib
    for first in [F.scaled_dot_product_attention]:
        pass
    with contextlib.nullcontext(first) as second:
        pass
    match second:
        case ready:
            pass
            """,
        ),
    ),
    Attack(
        name="a name put together, in another thread",
        story="Looks the function up by a name that is put together, with getattr handed on, and calls it in another thread.",
        wants=WANTS,
        bodies=body(
            "later(q, k, v, mask)",
            HONEST
            + LATER
            + """
    from functools import reduce
    ready = reduce(getattr, ("nn", "functional", "scaled_" + "dot_product_" + "attention"), torch)
            """,
        ),
    ),
    Attack(
        name="a task of a script",
        story="Lets TorchScript make the call in a task, which a thread of PyTorch's own pool does.",
        wants=WANTS,
        bodies=body(
            "unit.begin(q, k, v, mask)",
            """
            import warnings
            warnings.simplefilter("ignore")
            unit = torch.jit.CompilationUnit('''
            def task(q: Tensor, k: Tensor, v: Tensor, mask: Optional[Tensor]) -> Tensor:
                return torch.ops.aten.scaled_dot_product_attention(q, k, v, mask)

            def begin(q: Tensor, k: Tensor, v: Tensor, mask: Optional[Tensor]) -> Tensor:
                return torch.jit.wait(torch.jit.fork(task, q, k, v, mask))
            '''.replace("\\n            ", "\\n"))
            """,
        ),
    ),
    Attack(
        name="a profiler of one's own",
        story="Switches PyTorch's profiler on before anything is asked, and leaves it so, for there can be only one.",
        wants=WANTS,
        bodies=body(
            "ready(q, k, v, mask)",
            """
            from functools import reduce
            ready = reduce(getattr, ("nn", "functional", "scaled_" + "dot_product_" + "attention"), torch)
            mine = torch.autograd.profiler.profile(use_kineto=False)
            mine.__enter__()
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
    Attack(
        name="interrupted while watched",
        story="Makes the call and then interrupts itself wherever a mode is active, so that the account of what was seen is lost.",
        wants=WANTS,
        bodies=body(
            "either(q, k, v, mask)",
            """
            from functools import reduce
            ready = reduce(getattr, ("nn", "functional", "scaled_" + "dot_product_" + "attention"), torch)
            def either(q, k, v, mask):
                result = ready(q, k, v, mask)
                if torch.overrides._len_torch_function_stack():
                    raise KeyboardInterrupt
                return result
            """,
        ),
    ),
    hidden(
        "the list of modules by getattr",
        "Gets sys.modules by getattr with a plain name.",
        """
            import sys
            loaded = getattr(sys, "modules")
            def watched(q):
                return "torch._inspector" in loaded or q.requires_grad
        """,
    ),
    hidden(
        "the list of modules by attrgetter",
        "Gets sys.modules by operator.attrgetter with a plain name.",
        """
            import operator
            import sys
            loaded = operator.attrgetter("modules")(sys)
            def watched(q):
                return "torch._inspector" in loaded or q.requires_grad
        """,
    ),
    hidden(
        "the list of modules by a pattern",
        "Lets a class pattern match sys, which gives its attribute a name.",
        """
            import sys
            match sys:
                case object(modules=loaded):
                    pass
            def watched(q):
                return "torch._inspector" in loaded or q.requires_grad
        """,
    ),
    hidden(
        "another name for a module of PyTorch",
        "Asks torch.autograd, under another name, whether a profiler runs.",
        """
            import torch.autograd as engine
            def watched(q):
                return engine._profiler_enabled()
        """,
    ),
    hidden(
        "a module in a list",
        "Asks torch.overrides, which it has put into a list, how many modes are active.",
        """
            kept = [torch.overrides]
            def watched(q):
                return kept[0].is_tensor_method_or_property(q.sum)
        """,
    ),
    hidden(
        "names by a star",
        "Imports everything of torch.overrides by a star.",
        """
            from torch.overrides import *
            def watched(q):
                return has_torch_function((q,))
        """,
    ),
    hidden(
        "a cell that IPython rewrites",
        "Writes what it needs into a cell with a magic, which Python itself cannot parse.",
        """
            def watched(q):
                return not frames.is_tracked(q)
        """,
        "seen = %time 1\nimport gc as frames\n",
    ),
    hidden(
        "a cell behind a very long comment",
        "Writes what it needs into a cell with a comment of 200,001 characters.",
        """
            def watched(q):
                return not frames.is_tracked(q)
        """,
        "import gc as frames\n#" + 200_001 * "-" + "\n",
    ),
    hidden(
        "a cell run by IPython",
        "Has IPython run a text as a cell.",
        """
            get_ipython().run_cell("import gc as " + "frames")
            def watched(q):
                return not frames.is_tracked(q)
        """,
    ),
    hidden(
        "names of IPython's own",
        "Gets the modules out of the names that IPython keeps.",
        """
            names = get_ipython().user_ns
            def watched(q):
                return "torch_seen" in names
        """,
    ),
    hidden(
        "a program by posix_spawn",
        "Starts a program by os.posix_spawn before it makes the call.",
        """
            import os
            try:
                os.posix_spawn("/bin/true", ["true"], {})
            except OSError:
                pass
            def watched(q):
                return q.requires_grad
        """,
    ),
    hidden(
        "a program by popen",
        "Starts a program by os.popen before it makes the call.",
        """
            import os
            os.popen("true").close()
            def watched(q):
                return q.requires_grad
        """,
    ),
    hidden(
        "a program behind an exclamation mark",
        "Starts Python by a line for the shell.",
        """
            def watched(q):
                return q.requires_grad
        """,
        "!python -c pass\n",
    ),
    hidden(
        "a file written and imported",
        "Writes a module beside the notebook and imports it.",
        """
            with open("helper" + ".py", "w") as file:
                file.write("import gc as frames")
            from helper import frames
            def watched(q):
                return not frames.is_tracked(q)
        """,
    ),
    hidden(
        "a quantisable layer",
        "Makes the layer of torch.ao, which no list of forbidden functions has.",
        """
            layers = [torch.ao.nn.quantizable.MultiheadAttention(4, 1)]
            def watched(q):
                return not layers
        """,
    ),
    hidden(
        "honest without numbers",
        "Asks whether it is given tensors without numbers, by which the asker is known.",
        """
            def watched(q):
                return q.is_meta
        """,
    ),
    hidden(
        "honest on another device",
        "Asks for the device of what it is given, by which the asker is known.",
        """
            def watched(q):
                return str(q.device) == "meta"
        """,
    ),
)
