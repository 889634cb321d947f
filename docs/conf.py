"""Sphinx's settings: `sphinx-build -W -n -b html docs docs/_build/html`."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "debug-gym"
author = "the debug-gym contributors"
copyright = author
html_title = "debug-gym"
language = "en"

extensions = [
    *("myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"),
    *("debug_gym_autodoc", "debug_gym_reference"),
]
exclude_patterns = ["_build", "_ext", "examples"]
source_suffix = {".md": "markdown"}

myst_enable_extensions = ["deflist"]
myst_heading_anchors = 4

smartquotes_action = "D"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False
# Annotations name types of the standard library, of pydantic and gymnasium, and short names of our own: only references
# that are written out in full are checked.
nitpick_ignore_regex = [("py:.*", r"(?!debug_gym_core\.).*"), ("py:.*", r"debug_gym_core\.[a-z_.]+\.[A-Z_].*")]
toc_object_entries = False

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["tables.css"]
html_show_sourcelink = False
html_copy_source = False
copybutton_prompt_text = r"\$ |>>> "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True
