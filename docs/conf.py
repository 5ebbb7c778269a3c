"""How Sphinx builds these pages; `make docs` fails on any warning."""

import sys
from pathlib import Path

from planaria import __version__

sys.path.append(str(Path(__file__).parent))

project = "Planaria"
author = "the Planaria authors"
release = __version__

extensions = ["myst_parser", "reference_pages"]
myst_heading_anchors = 3
myst_enable_extensions = ["deflist"]

html_theme = "furo"
html_title = f"Planaria {release}"
html_copy_source = False
html_static_path = ["static"]
html_css_files = ["tables.css"]
nitpicky = True
