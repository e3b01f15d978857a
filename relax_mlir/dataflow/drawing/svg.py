"""Writes pictures of dataflow graphs as SVG, which browsers and editors show.

    Path("graph.svg").write_text(svg(module(main)))

Source: Scalable Vector Graphics 1.1.
"""

from collections.abc import Iterator, Sequence
from xml.sax.saxutils import escape

from relax_mlir.bindings import ir
from relax_mlir.dialects.graph import ALL_TO_ALL, ONE_TO_ONE, TILES

from .hierarchy import VALUE, graphs_of
from .layout import (
    CARDS,
    LINE,
    PAD,
    SMALL,
    TITLE,
    Picture,
    Placed,
    placed,
    shortened,
    text_width,
)

MARGIN, LEGEND = 16.0, 30.0
MAX_WIDTH = 1200.0
"""Functions are next to each other up to this width."""
COLORS = {ONE_TO_ONE: "#2a6db0", TILES: "#7a4fa3", ALL_TO_ALL: "#c2570c", VALUE: "#8a929b"}
STREAM = "stream"
MEANINGS = {
    ONE_TO_ONE: "one_to_one: a part each",
    TILES: "tiles: a tile each",
    ALL_TO_ALL: "all_to_all: all, after all",
    VALUE: "value",
    STREAM: "stream: a queue of items",
}
STYLE = """
text { font-family: ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace; fill: #1f2328; }
.name { font-size: 13px; font-weight: bold; }
.small { font-size: 11px; fill: #57606a; }
.function { fill: #ffffff; stroke: #8a929b; }
.internal { fill: #f0f4f9; stroke: #6b87a8; }
.leaf { fill: #e3f1e5; stroke: #4d8f5b; }
.operator { fill: #f3f3f3; stroke: #8a929b; }
.input, .result { fill: #fff8e5; stroke: #b79a4a; }
.target { fill: #ffffff; stroke: #4d8f5b; }
"""


def svg(module: ir.Module) -> str:
    """The dataflow graphs of a module: a box for each function that runs nodes.

    Internal nodes contain their graphs; a node with several instances is a deck of cards. Edges
    have colors by their kind, those `all_to_all` end at a bar, streams are dashed. Long names are
    cut; a pointer shows them. Raises CompileError if a rule of nodes is broken, UsageError if there
    are no nodes or too many to draw.
    """
    with module.context:
        roots = [placed(box) for box in graphs_of(module)]
    width, height = _arrange(roots)
    kinds = _kinds(roots)
    body = [line for root in roots for line in _box(root, 0.0, 0.0)]
    width = max(width, MARGIN + max(map(_legend_width, kinds)))
    legend, height = _legend(kinds, width, height)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}">'
    )
    background = '<rect width="100%" height="100%" fill="#ffffff"/>'
    return "\n".join([head, f"<style>{STYLE}</style>", background, *body, *legend, "</svg>", ""])


def _arrange(roots: Sequence[Placed]) -> tuple[float, float]:
    """Puts functions into rows; the size of all."""
    x = y = MARGIN
    width = row = 0.0
    for root in roots:
        if x > MARGIN and x + root.width > MAX_WIDTH:
            x, y, row = MARGIN, y + row + MARGIN, 0.0
        root.x, root.y = x, y
        x, row = x + root.width + MARGIN, max(row, root.height)
        width = max(width, x)
    return width, y + row + MARGIN / 2


def _kinds(roots: Sequence[Placed]) -> list[str]:
    """What the legend explains: the kinds of edges in a picture, and that some are streams."""
    kinds: set[str] = set()
    rest = list(roots)
    while rest:
        inner = rest.pop().inner
        if inner is not None:
            kinds |= {edge.kind for edge, _ in inner.routes}
            kinds |= {STREAM for edge, _ in inner.routes if edge.is_stream}
            rest += inner.boxes
    return [kind for kind in MEANINGS if kind in kinds]


def _box(at: Placed, left: float, top: float) -> Iterator[str]:
    """A box and what is inside; `left` and `top` are the corner of the graph that it is in."""
    box, x, y = at.box, left + at.x, top + at.y
    yield f"<g><title>{escape(' | '.join(filter(None, (box.name, *box.lines))))}</title>"
    radius = 11 if box.kind in ("input", "result") else 5
    for card in (2, 1, 0) if box.is_replicated else (0,):
        yield (
            f'<rect class="{box.kind}" x="{x + card * CARDS:.1f}" y="{y + card * CARDS:.1f}" '
            f'width="{at.width:.1f}" height="{at.height:.1f}" rx="{radius}"/>'
        )
    yield from _texts(at, x, y)
    yield "</g>"
    if at.inner is not None:
        inside = x + (at.width - at.inner.width) / 2
        yield from _graph(at.inner, inside, y + TITLE + len(box.lines) * LINE + 4)


def _texts(at: Placed, x: float, y: float) -> Iterator[str]:
    box = at.box
    if box.kind in ("input", "result"):
        if box.name:
            yield _text(x + PAD, y + 15, "name", box.name)
            yield _text(x + at.width - PAD, y + 15, "small", box.lines[0], "end")
        else:
            yield _text(x + at.width / 2, y + 15, "small", box.lines[0], "middle")
        return
    yield _text(x + PAD, y + 17, "name", box.name)
    for index, line in enumerate(box.lines):
        yield _text(x + PAD, y + TITLE + LINE * index + 9, "small", line)
    right = x + at.width - PAD
    for target in reversed(box.targets):
        width = text_width(target, SMALL) + 10
        right -= width
        yield (
            f'<rect class="target" x="{right:.1f}" y="{y + 5:.1f}" width="{width:.1f}" '
            'height="15" rx="7"/>'
        )
        yield _text(right + 5, y + 16, "small", target)
        right -= 4


def _text(x: float, y: float, style: str, text: str, anchor: str = "start") -> str:
    shown = escape(shortened(text))
    return f'<text class="{style}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{shown}</text>'


def _graph(picture: Picture, left: float, top: float) -> Iterator[str]:
    for edge, route in picture.routes:
        points = [(left + x, top + a, top + b) for x, a, b in route]
        yield from _edge(COLORS[edge.kind], points, edge.kind == ALL_TO_ALL, edge.is_stream)
    for box in picture.boxes:
        yield from _box(box, left, top)


def _edge(
    color: str, route: Sequence[tuple[float, float, float]], is_barrier: bool, is_stream: bool
) -> Iterator[str]:
    """A curve between layers, a line through each, and an arrow: a bar is a barrier."""
    x, top, bottom = route[0]
    path = f"M{x:.1f},{top:.1f}V{bottom:.1f}"
    for end, above, below in route[1:]:
        half = (above - bottom) / 2
        path += f"C{x:.1f},{bottom + half:.1f} {end:.1f},{above - half:.1f} {end:.1f},{above:.1f}"
        path += f"V{below:.1f}"
        x, bottom = end, below
    dashes = ' stroke-dasharray="7 4"' if is_stream else ""
    yield f'<path d="{path}" fill="none" stroke="{color}" stroke-width="1.6"{dashes}/>'
    yield f'<path d="M{x:.1f},{bottom:.1f}l-4,-8h8z" fill="{color}"/>'
    if is_barrier:
        yield f'<path d="M{x - 7:.1f},{bottom - 11:.1f}h14" stroke="{color}" stroke-width="3"/>'


def _legend_width(kind: str) -> float:
    return text_width(MEANINGS[kind], SMALL) + 50


def _legend(kinds: Sequence[str], width: float, top: float) -> tuple[list[str], float]:
    """What edges mean, in as many rows as fit into the width; and where it ends."""
    lines: list[str] = []
    x, y = MARGIN, top + LEGEND / 2
    for kind in kinds:
        if x > MARGIN and x + _legend_width(kind) > width:
            x, y = MARGIN, y + LEGEND
        route = [(x + 8, y - 12, y - 12), (x + 8, y + 8, y + 8)]
        lines += _edge(COLORS.get(kind, COLORS[VALUE]), route, kind == ALL_TO_ALL, kind == STREAM)
        lines.append(_text(x + 24, y + 4, "small", MEANINGS[kind]))
        x += _legend_width(kind)
    return lines, y + LEGEND / 2
