"""Where the boxes of a graph are: sizes from texts, positions from layers, inner graphs first."""

import itertools
from dataclasses import dataclass, field

from .hierarchy import Box, Edge, Graph
from .layers import Layers, apart, layers_of

NAME, SMALL = 13.0, 11.0
"""Sizes of fonts."""
ADVANCE = 0.61
"""The advance of a monospaced font, as a part of its size."""
PAD, LINE = 10.0, 15.0
LAYER_GAP, BOX_GAP = 42.0, 26.0
TITLE = 24.0
CARDS = 4.0
"""The offset of the cards that show that a node has several instances."""
LONGEST = 34
"""Characters of a text that are shown."""
SWEEPS = 12


@dataclass
class Placed:
    """A box with its upper left corner, relative to the graph that it is in, and its size."""

    box: Box
    x: float = 0.0
    y: float = 0.0
    width: float = 0.0
    height: float = 0.0
    inner: "Picture | None" = None

    @property
    def middle(self) -> float:
        """The coordinate of the centre."""
        return self.x + self.width / 2


@dataclass
class Picture:
    """A graph with the positions of boxes, and the points of edges: each a vertical line."""

    boxes: list[Placed]
    width: float = 0.0
    height: float = 0.0
    routes: list[tuple[Edge, list[tuple[float, float, float]]]] = field(default_factory=list)
    """Per edge, x, upper y and lower y of each layer that it passes."""


def shortened(text: str, longest: int = LONGEST) -> str:
    """The text, or its beginning and an ellipsis."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def text_width(text: str, size: float) -> float:
    """The width of what is shown of a text."""
    return len(shortened(text)) * size * ADVANCE


def placed(box: Box) -> Placed:
    """A box with its size, and the layout of what is inside."""
    made = Placed(box)
    name = text_width(box.name, NAME)
    targets = sum(text_width(target, SMALL) + 18 for target in box.targets)
    lines = max((text_width(line, SMALL) for line in box.lines), default=0.0)
    if box.kind == "input":
        made.width = name + lines + (8 if box.name else 0) + 2 * PAD
        made.height = 22.0
    elif box.kind == "result":
        made.width, made.height = lines + 2 * PAD, 22.0
    else:
        made.width = max(name + targets, lines) + 2 * PAD
        made.height = TITLE + len(box.lines) * LINE + 4
    if box.inner is not None:
        made.inner = picture_of(box.inner)
        made.width = max(made.width, made.inner.width + 2 * PAD)
        made.height += made.inner.height + PAD
    return made


def picture_of(graph: Graph) -> Picture:
    """The layout of a graph; its upper left corner is the origin."""
    boxes, layers = [placed(box) for box in graph.boxes], layers_of(graph)
    middles = _middles(graph, boxes, layers)
    picture = Picture(boxes)
    bounds: dict[int, tuple[float, float]] = {}
    y = 0.0
    for row in layers.rows:
        height = max((boxes[x].height for x in row if x < len(boxes)), default=0.0)
        for x in row:
            bounds[x] = y, y + height
            if x < len(boxes):
                boxes[x].x = middles[x] - boxes[x].width / 2
                boxes[x].y = y + (height - boxes[x].height) / 2
        y += height + LAYER_GAP
    picture.height = max(0.0, y - LAYER_GAP)
    for edge, path in zip(graph.edges, layers.paths, strict=True):
        picture.routes.append((edge, _route(graph, edge, path, boxes, middles, bounds)))
    _shift_to_origin(picture)
    return picture


def _route(
    graph: Graph,
    edge: Edge,
    path: list[int],
    boxes: list[Placed],
    middles: list[float],
    bounds: dict[int, tuple[float, float]],
) -> list[tuple[float, float, float]]:
    source, target = boxes[edge.source], boxes[edge.target]
    bends = [(middles[x], *bounds[x]) for x in path[1:-1]]
    first = source.middle, source.y + source.height, bounds[edge.source][1]
    return [first, *bends, (_port(graph, edge, target), bounds[edge.target][0], target.y)]


def _port(graph: Graph, edge: Edge, target: Placed) -> float:
    """Where an edge ends at the upper side of its target."""
    return target.middle + _offset(graph, edge, target)


def _offset(graph: Graph, edge: Edge, target: Placed) -> float:
    count = graph.operands(edge.target)
    spread = min(28.0 * (count - 1), target.width - 2 * PAD)
    return spread * (edge.operand / (count - 1) - 0.5) if count > 1 else 0.0


def _middles(graph: Graph, boxes: list[Placed], layers: Layers) -> list[float]:
    """The centres of points: near to those they are linked with, but apart."""
    widths = [box.width + (4 * CARDS if box.box.is_replicated else 0) for box in boxes]
    widths += [0.0] * (layers.size - len(boxes))
    near: list[list[tuple[int, float]]] = [[] for _ in range(layers.size)]
    for edge, path in zip(graph.edges, layers.paths, strict=True):
        offset = _offset(graph, edge, boxes[edge.target])
        for a, b in itertools.pairwise(path):
            shift = offset if b == edge.target else 0.0
            near[a].append((b, shift))
            near[b].append((a, -shift))
    is_bend = [x >= len(boxes) for x in range(layers.size)]
    at = [0.0] * layers.size
    for row in layers.rows:
        start = -sum(widths[x] + BOX_GAP for x in row) / 2
        for x in row:
            at[x] = start + widths[x] / 2
            start += widths[x] + BOX_GAP
    for sweep in range(SWEEPS):
        for row in layers.rows if sweep % 2 == 0 else layers.rows[::-1]:
            wanted = [
                sum(at[y] + shift for y, shift in near[x]) / len(near[x]) if near[x] else at[x]
                for x in row
            ]
            gaps = [
                (widths[a] + widths[b]) / 2 + BOX_GAP * (0.5 if is_bend[a] and is_bend[b] else 1)
                for a, b in itertools.pairwise(row)
            ]
            weights = [4.0 if is_bend[x] else 1.0 for x in row]
            for x, value in zip(row, apart(wanted, gaps, weights)):
                at[x] = value
    return at


def _shift_to_origin(picture: Picture) -> None:
    lefts = [box.x for box in picture.boxes] + [x for _, r in picture.routes for x, *_ in r]
    rights = [box.x + box.width + 2 * CARDS for box in picture.boxes]
    rights += [x for _, route in picture.routes for x, *_ in route]
    left = min(lefts, default=0.0)
    for box in picture.boxes:
        box.x -= left
    picture.routes = [
        (edge, [(x - left, top, bottom) for x, top, bottom in route])
        for edge, route in picture.routes
    ]
    picture.width = max(rights, default=0.0) - left
