"""Configuration of the documentation site; `make docs` builds it."""

import re
from importlib import metadata
from typing import Any

project = "bilateral"
author = "The bilateral developers"
release = metadata.version("bilateral")
extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = [
    "_build",
    "images/*.py",
    "gallery/**/*.ipynb",
    "gallery/**/*.py",
    "results/summary.md",
]
templates_path = ["_templates"]
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme = "pydata_sphinx_theme"
html_title = "bilateral"
html_theme_options = {
    "header_links_before_dropdown": 6,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "show_toc_level": 2,
    "use_edit_page_button": False,
}
html_sidebars = {"quickstart": []}
html_show_sourcelink = False

# Formulas are drawn by MathJax from the npm package, which `make docs` puts here.
mathjax_path = "mathjax/tex-svg.js"
myst_enable_extensions = ["dollarmath", "html_image"]
myst_heading_anchors = 3
suppress_warnings = ["myst.header"]  # generated results skip a level of headings
myst_fence_as_directive = ["math"]

autosummary_generate = True
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
autodoc_typehints = "none"
default_role = "py:obj"  # a link where the name is known, else code
nitpicky = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "subsection_order": [
        f"../examples/gallery/{n}" for n in ("depth", "pictures", "solver", "layers")
    ],
    "within_subsection_order": "ExampleTitleSortKey",
    "plot_gallery": True,
    "thumbnail_size": (540, 220),
    "abort_on_example_error": True,
    "download_all_examples": False,
    "min_reported_time": 10,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "matplotlib_animations": False,
    "capture_repr": (),
    "copyfile_regex": "",
}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True


def _read(_app: object, docname: str, source: list[str]) -> None:
    """Adapt pages that are also read in the repository."""
    files = r"\[([^\]]+)\]\((?:\.\./)+(?:examples|src|benchmarks)/[^)]*\)"
    source[0] = re.sub(files, r"`\1`", source[0])  # links to files that are not in the site
    if docname in ("notes/README", "results/README"):
        source[0] += "\n\n```{toctree}\n:hidden:\n:glob:\n\n*\n```\n"


def setup(app: Any) -> None:
    """Register the hook."""
    app.connect("source-read", _read)
