"""A step of a lattice Boltzmann method, D3Q19: instances pull densities and relax them."""

from functools import reduce
from operator import add

from relax_mlir.dataflow import Instance, Port, Scalar, Tensor, graph, leaf, whole

DIRECTIONS = [
    (z, y, x)
    for z in (0, 1, -1)
    for y in (0, 1, -1)
    for x in (0, 1, -1)
    if abs(z) + abs(y) + abs(x) <= 2
]
"""The 19 directions; the first one is rest."""
WEIGHTS = [(1 / 3, 1 / 18, 1 / 36)[sum(map(abs, e))] for e in DIRECTIONS]
OMEGA = 1.2
"""How fast densities relax."""


@leaf(f="f32[d, h, w, 19]")
def cell(at: Instance, f: Tensor) -> Tensor:
    """The densities of a cell: those of its neighbours, relaxed to their equilibrium."""
    z, y, x = at.ids(3)
    pulled = [f[z - dz, y - dy, x - dx, q] for q, (dz, dy, dx) in enumerate(DIRECTIONS)]
    mass = reduce(add, pulled)
    speed = [_along(pulled, axis) / mass for axis in range(3)]
    rest = 1.0 - 1.5 * reduce(add, [u * u for u in speed])
    made = at.filled(0, 19)
    for q, (e, weight) in enumerate(zip(DIRECTIONS, WEIGHTS, strict=True)):
        made = made.set(q, _relaxed(pulled[q], mass * weight, speed, e, rest))
    return made


def _along(pulled: list[Scalar], axis: int) -> Scalar:
    """The momentum along an axis."""
    parts = [p if e[axis] > 0 else -p for p, e in zip(pulled, DIRECTIONS, strict=True) if e[axis]]
    return reduce(add, parts)


def _relaxed(
    density: Scalar,
    mass: Scalar,
    speed: list[Scalar],
    direction: tuple[int, int, int],
    rest: Scalar,
) -> Scalar:
    """A density closer to its equilibrium."""
    parts = [u if e > 0 else -u for u, e in zip(speed, direction, strict=True) if e]
    factor = rest
    if parts:
        along = reduce(add, parts)
        factor = rest + along * (3.0 + 4.5 * along)
    return density * (1 - OMEGA) + OMEGA * mass * factor


@graph(f="f32[d, h, w, 19]")
def lbm(f: Port) -> object:
    """The densities after a step."""
    return cell.over("d", "h", "w")(whole(f))
