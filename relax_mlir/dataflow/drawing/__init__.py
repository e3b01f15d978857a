"""Pictures of dataflow graphs, as SVG: nested boxes of nodes, and the edges between them.

`hierarchy.py` reads a module as graphs of boxes, `layers.py` and `layout.py` compute where these
are, `svg.py` writes them.
"""

from .svg import svg

__all__ = ["svg"]
