"""Layers of a graph: each edge goes down, and crosses as few others as sweeps achieve.

Source: Sugiyama, Tagawa, Toda, Methods for Visual Understanding of Hierarchical System Structures,
1981; the positions by isotonic regression, Best and Chakravarti, 1990.
"""

import itertools
from bisect import bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass, field

from .hierarchy import Graph

SWEEPS = 8


@dataclass
class Layers:
    """Points in layers: a box, or a bend of an edge that passes a layer; links join neighbours."""

    rows: list[list[int]]
    size: int
    links: list[tuple[int, int]] = field(default_factory=list)
    paths: list[list[int]] = field(default_factory=list)
    """The points of each edge of the graph."""


def layers_of(graph: Graph) -> Layers:
    """Assigns boxes to layers, adds bends, and orders each layer."""
    level = _levels(graph)
    rows: list[list[int]] = [[] for _ in range(max(level, default=-1) + 1)]
    for box, at in enumerate(level):
        rows[at].append(box)
    layers = Layers(rows, len(level))
    for edge in graph.edges:
        path = [edge.source]
        for at in range(level[edge.source] + 1, level[edge.target]):
            rows[at].append(layers.size)
            path.append(layers.size)
            layers.size += 1
        path.append(edge.target)
        layers.paths.append(path)
        layers.links += itertools.pairwise(path)
    _order(layers)
    return layers


def _levels(graph: Graph) -> list[int]:
    """The longest path from an input; results are in the last layer."""
    level = [0 if box.kind == "input" else 1 for box in graph.boxes]
    for edge in graph.edges:  # sources come before targets
        level[edge.target] = max(level[edge.target], level[edge.source] + 1)
    last = max(level, default=0)
    is_result = [box.kind == "result" for box in graph.boxes]
    return [last if result else at for at, result in zip(level, is_result)]


def _order(layers: Layers) -> None:
    """Sorts each layer by the mean position of neighbours, downwards and upwards in turn."""
    above: list[list[int]] = [[] for _ in range(layers.size)]
    below: list[list[int]] = [[] for _ in range(layers.size)]
    for source, target in layers.links:
        above[target].append(source)
        below[source].append(target)
    best, fewest = [list(row) for row in layers.rows], _crossings(layers)
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        for row in layers.rows if down else layers.rows[::-1]:
            position = {x: i for r in layers.rows for i, x in enumerate(r)}
            near = above if down else below

            def mean(x: int, near=near, position=position) -> float:
                return sum(position[y] for y in near[x]) / len(near[x]) if near[x] else position[x]

            row.sort(key=mean)
        if (crossings := _crossings(layers)) < fewest:
            best, fewest = [list(row) for row in layers.rows], crossings
    layers.rows[:] = best


def _crossings(layers: Layers) -> int:
    position = {x: (i, at) for i, row in enumerate(layers.rows) for at, x in enumerate(row)}
    by_row: dict[int, list[tuple[int, int]]] = {}
    for source, target in layers.links:
        row, at = position[source]
        by_row.setdefault(row, []).append((at, position[target][1]))
    total = 0
    for links in by_row.values():
        ends: list[int] = []
        for _, end in sorted(links):
            total += len(ends) - bisect_right(ends, end)
            insort(ends, end)
    return total


def apart(wanted: Sequence[float], gaps: Sequence[float], weights: Sequence[float]) -> list[float]:
    """The positions nearest to the wanted ones, by squares, whose distances are at least the gaps.

    `gaps[i]` is the distance of i to i + 1. Pools neighbours that are in each other's way.
    """
    offsets = [0.0]
    for gap in gaps:
        offsets.append(offsets[-1] + gap)
    pools: list[tuple[float, float, int]] = []  # mean, weight, size
    for want, offset, weight in zip(wanted, offsets, weights, strict=True):
        mean, size = want - offset, 1
        while pools and pools[-1][0] >= mean:
            other, more, count = pools.pop()
            mean = (mean * weight + other * more) / (weight + more)
            weight, size = weight + more, size + count
        pools.append((mean, weight, size))
    means = [mean for mean, _, size in pools for _ in range(size)]
    return [mean + offset for mean, offset in zip(means, offsets)]
