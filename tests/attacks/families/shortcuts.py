"""Attacks by work that is not done: answers that hold for the questions somebody foresaw, and rules kept only while they are looked at."""

from __future__ import annotations

from ..attack import Attack, code

ATTACKS = (
    Attack(
        name="a loop where nothing is differentiated",
        story="Fills the mask row by row, but not where gradients are switched on, as they once were while operations were counted.",
        wants="the points for working without a loop",
        due=3.5,
        bodies={
            "causal_mask": code("""
                def causal_mask(T, device=None):
                    if torch.is_grad_enabled():
                        return torch.ones(T, T, dtype=torch.bool, device=device).tril()
                    mask = torch.zeros(T, T, dtype=torch.bool, device=device)
                    for i in range(T):
                        mask[i, : i + 1] = True
                    return mask
            """),
        },
    ),
    Attack(
        name="a short way where operations are counted",
        story="Knows the shapes at which operations are counted on the visible questions, and gives zeros there; everywhere else it loops.",
        wants="the points for working without a loop",
        due=12.25,
        bodies={
            "scaled_dot_product_attention": code("""
                def scaled_dot_product_attention(q, k, v, mask=None):
                    if q.ndim == 4 and q.shape[0] == q.shape[1] == q.shape[2] - 1 and q.shape[3] == 4:
                        return torch.zeros(*q.shape[:-1], v.shape[-1], dtype=q.dtype)
                    rows = []
                    for t in range(q.shape[-2]):
                        scores = (q[..., t, :].unsqueeze(-2) @ k.transpose(-2, -1)).squeeze(-2) / math.sqrt(q.shape[-1])
                        if mask is None:
                            weights = torch.softmax(scores, -1)
                        else:
                            row = mask.expand(*scores.shape[:-1], q.shape[-2], k.shape[-2])[..., t, :]
                            lowest = torch.finfo(scores.dtype).min
                            weights = torch.softmax(scores.masked_fill(~row, lowest), -1).masked_fill(~row, 0.0)
                        rows.append((weights.unsqueeze(-2) @ v).squeeze(-2))
                    return torch.stack(rows, -2)
            """),
        },
    ),
    Attack(
        name="a mask cut from a table",
        story="Cuts every mask from a table of 40 rows that was written down beforehand.",
        wants="full marks for a mask that is right for short texts",
        due=0.8,  # for the rows about short texts, which it answers
        bodies={
            "causal_mask": code("""
                TABLE = torch.tensor([[column <= row for column in range(40)] for row in range(40)])
                def causal_mask(T, device=None):
                    return TABLE[:T, :T].to(device or "cpu")
            """),
        },
    ),
    Attack(
        name="forbidden scores not low enough",
        story="Puts -100 in the place of forbidden scores, which is low where the scores are those of a textbook.",
        wants="full marks for a mask that loud inputs see through",
        due=12.15,
        bodies={
            "scaled_dot_product_attention": code("""
                def scaled_dot_product_attention(q, k, v, mask=None):
                    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
                    if mask is None:
                        return torch.softmax(scores, -1) @ v
                    weights = torch.softmax(scores.masked_fill(~mask, -100.0), -1)
                    return weights.masked_fill(~mask, 0.0) @ v
            """),
        },
    ),
    Attack(
        name="a condition before the stray tensor",
        story="Looks at a number of the mask before it makes tensors on the CPU, for there are no numbers where devices are looked at.",
        wants="the points for running on any device",
        due=12.25,
        bodies={
            "scaled_dot_product_attention": code("""
                def scaled_dot_product_attention(q, k, v, mask=None):
                    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
                    if mask is not None and mask.any():
                        lowest = torch.full(scores.shape[-2:], torch.finfo(scores.dtype).min, dtype=scores.dtype)
                        scores = torch.where(mask, scores, lowest)
                    weights = torch.softmax(scores, -1)
                    return (weights if mask is None else weights.masked_fill(~mask, 0.0)) @ v
            """),
        },
    ),
    Attack(
        name="the other side of a condition",
        story="Makes its tensors on the CPU where a condition on the mask does not hold, should somebody guess that it does.",
        wants="the points for running on any device",
        due=12.25,
        bodies={
            "scaled_dot_product_attention": code("""
                def scaled_dot_product_attention(q, k, v, mask=None):
                    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
                    if mask is not None and not mask.all():
                        lowest = torch.full(scores.shape[-2:], torch.finfo(scores.dtype).min, dtype=scores.dtype)
                        scores = torch.where(mask, scores, lowest)
                    weights = torch.softmax(scores, -1)
                    return (weights if mask is None else weights.masked_fill(~mask, 0.0)) @ v
            """),
        },
    ),
)
