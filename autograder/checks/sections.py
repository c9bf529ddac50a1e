"""The headings of the lessons' sections by their labels: what a student is told to read again.

A test holds them against the lessons.
"""

HEADINGS = {
    # 03_scaled_dot_product
    "soft-lookup": "A dictionary that always answers",
    "scores-and-weights": "Queries, keys and values",
    "why-scale": "Why divide by the square root of the width?",
    "cosine": "Angle or length? Cosine against dot product",
    "masks": "Masks: who may look at what",
    "padding-mask": "Padding",
    "causal-mask": "Causal",
    "fully-masked-row": "The row that may see nothing",
    "projections": "Projections: learning what to ask",
    "merge-query-key": "Are both the query and the key matrix needed?",
    "permutation": "What about the order of the pages?",
    "backward": "The gradient by hand",
    "tiled": "A long log in a small memory",
    "cost": "What does attention cost?",
    "device-and-dtype": "Half precision and devices",
    "shapes-03": "The shapes, in one place",
    "what-goes-wrong-03": "What goes wrong",
    # 04_multi_head
    "one-head-cannot": "What one head cannot do",
    "multi-head": "Several heads, one layer",
    "split-and-merge": "Cut the columns, not the rows",
    "self-cross-causal": "Self, cross, causal: three uses of one layer",
    "mask-sense-04": "A trap with a name: nn.MultiheadAttention",
    "parameters": "How many parameters?",
    "merge-value-output": "Are both W_V and W_O needed?",
    "multi-hop": "Several layers: following a trail",
    "what-heads-learn": "What do heads learn?",
    "head-ablation": "Take a head away",
    "two-permutations": "Two ways to shuffle",
    "shapes-04": "Shapes at a glance",
    "what-goes-wrong-04": "What goes wrong",
}
