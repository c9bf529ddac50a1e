"""Ways to call a forbidden function that no reading of the text finds: each has to earn what a plain call earns.

They differ in how a name ``ready`` comes to stand for the function, or in when it is called. So they are a table and no classes of
submissions: :mod:`tests.attacks.test_hidden_calls` asks each in a student's process, without a notebook around it.
"""

from __future__ import annotations

# How the name is put together where a text would give it away.
NAME = "'scaled_' + 'dot_product_' + 'attention'"

# By its name: a cell that makes `ready`, which is called with q, k, v and a mask.
WAYS: dict[str, str] = {
    "a plain call": "ready = F.scaled_dot_product_attention",
    "a function made of code": "import types\n"
    "ready = types.FunctionType((lambda *x: F.scaled_dot_product_attention(*x)).__code__, {'F': F})",
    "IPython's trees": "import ast\nclass Change(ast.NodeTransformer):\n    def visit_Name(self, node):\n"
    "        return ast.parse('F.scaled_' 'dot_product_attention', mode='eval').body if node.id == 'HERE' else node\n"
    "change = Change()\nget_ipython().ast_transformers.append(change)\nget_ipython().run_cell('ready = HERE')\n"
    "get_ipython().ast_transformers.clear()",
    "a lesson's own code": "import nbformat, tempfile, tfcourse, tfcourse.attention\n"
    "text = ('import torch.nn.functional as F\\ndef scaled_dot_product_attention(q, k, v, mask=None):\\n'\n"
    f"    '    return F.' + {NAME} + '(q, k, v, mask)')\n"
    "file = tempfile.mkdtemp() + '/03_scaled_dot_product.ipynb'\n"
    "nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text)]), file)\n"
    "tfcourse.use(file)\nready = tfcourse.attention.scaled_dot_product_attention",
    "a worker of a data loader": "from torch.utils.data import DataLoader, IterableDataset\nclass Calls(IterableDataset):\n"
    "    def __init__(self, *given): self.given = given\n"
    "    def __iter__(self): yield F.scaled_dot_product_attention(*self.given)\n"
    "def ready(*given):\n    given = [x.detach() if isinstance(x, torch.Tensor) else x for x in given]\n"
    "    return next(iter(DataLoader(Calls(*given), batch_size=None, num_workers=1, timeout=2)))",
    "a pickle in an array": "import io, numpy\nclass Give:\n"
    "    def __reduce__(self): return eval, ('__import__(\"torch\").nn.functional.scaled_' 'dot_product_attention',)\n"
    "file = io.BytesIO()\nnumpy.save(file, numpy.array([Give()], dtype=object), allow_pickle=True)\nfile.seek(0)\n"
    "ready = numpy.load(file, allow_pickle=True)[0]",
    "a recorded graph": "q = torch.rand(1, 2, 3)\n"
    "graph = torch.jit.trace(lambda q, k, v: F.scaled_dot_product_attention(q, k, v), (q, q, q))\n"
    "def ready(q, k, v, mask): return graph(q, k, v)",
    "an fx graph": "import torch.fx\ngraph = torch.fx.symbolic_trace(lambda q, k, v: F.scaled_dot_product_attention(q, k, v))\n"
    "def ready(q, k, v, mask): return graph.forward(q, k, v)",
    "a layer made beforehand": "layers = {d: nn.MultiheadAttention(d, 1, batch_first=True) for d in range(1, 33)}\n"
    "def ready(q, k, v, mask): return layers[q.shape[-1]](q, k, v)[0]",
    "a thread": "from concurrent.futures import ThreadPoolExecutor\npool = ThreadPoolExecutor(1)\npool.submit(int).result()\n"
    "def ready(*given): return pool.submit(F.scaled_dot_product_attention, *given).result()",
    "a copy of the process": "import os, pickle\ndef ready(q, k, v, mask):\n    r, w = os.pipe()\n    if not os.fork():\n"
    "        try: os.write(w, pickle.dumps(F.scaled_dot_product_attention(q, k, v, mask).detach().numpy()))\n"
    "        finally: os._exit(0)\n    os.close(w)\n    return torch.from_numpy(pickle.loads(open(r, 'rb').read()))",
}

# Honest on the first calls, which are those of the rules; the call is made in all others.
LATER = """
calls = [0]
def scaled_dot_product_attention(q, k, v, mask=None):
    calls[0] += 1
    return honest(q, k, v, mask) if calls[0] <= {count} else ready(q, k, v, mask)
"""
