"""The configuration with which Sphinx makes slides; MyST extensions and timeouts come from the site's configuration.

Sphinx reads this file as ``conf.py``; ``build.py`` passes what only one build knows, such as the course's root folder.
"""

import os
from pathlib import Path

import yaml

_HERE = Path(__file__).parent
_SITE = yaml.safe_load(Path(os.environ.get("TFCOURSE_ROOT", ""), "_config.yml").read_text(encoding="utf-8"))

project = "slides"
root_doc = "index"
language = "en"
extensions = ["myst_nb", "sphinx_revealjs", "sphinx.ext.mathjax", "autograder.site.slides.extension"]
exclude_patterns = ["jupyter_execute"]
html_title = "Slides"
html_copy_source = False
myst_enable_extensions = _SITE["parse"]["myst_enable_extensions"]
nb_execution_mode = "cache"
nb_execution_timeout = _SITE["execute"]["timeout"]
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_merge_streams = True
nb_ipywidgets_js: dict[str, str] = {}
# The decks lie in a folder of the site, which has MathJax.
mathjax_path = "../../_static/mathjax/tex-chtml.js"
templates_path = [str(_HERE / "templates")]
revealjs_html_theme = "revealjs-simple"
revealjs_style_theme = "slides.css"
revealjs_static_path = [str(_HERE / "static")]
revealjs_script_conf = {
    # Slides take the screen as it is: each text is sized by its slide's width, and a figure takes what is left.
    "disableLayout": True,
    "display": "flex",
    "center": False,
    "controls": False,
    "hash": True,
    "navigationMode": "linear",
    "pdfSeparateFragments": False,
    "slideNumber": "c/t",
    "transition": "none",
    "backgroundTransition": "none",
    "width": 1280,
    "height": 720,
    "margin": 0,
}
revealjs_script_plugins = [
    {"src": "revealjs/plugin/notes/notes.js", "name": "RevealNotes"},
    {"src": "revealjs/plugin/highlight/highlight.js", "name": "RevealHighlight"},
]
