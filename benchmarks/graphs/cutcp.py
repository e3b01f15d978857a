"""Potentials of charges within a cutoff: cells of lattice points, and the charges around them.

A cell has 4 x 4 x 16 points of distance 1/4 along z and y and 1/16 along x, and 8 charges; its
sides are the cutoff, so the charges of 27 cells count. A charge is its position and its strength.
"""

from relax_mlir.dataflow import (
    Instance,
    Port,
    Scalar,
    Tensor,
    graph,
    internal,
    leaf,
    sqrt,
    where,
    whole,
)

POINTS = (4, 4, 16)
CHARGES = 8


@leaf(charges="f32[d, h, w, 8, 4]")
def potential(at: Instance, charges: Tensor) -> Scalar:
    """The potential at a lattice point."""
    cell = at.ids(3, level=1)
    position = [
        c.astype("f32") + i.astype("f32") * (1 / points)
        for c, i, points in zip(cell, at.ids(3), POINTS, strict=True)
    ]

    def near(a: Scalar, b: Scalar, c: Scalar, charge: Scalar, total: Scalar) -> Scalar:
        around = [s - 1 + own for s, own in zip((a, b, c), cell, strict=True)]
        inside = [(x >= 0) & (x < charges.extent(axis)) for axis, x in enumerate(around)]
        z, y, x, strength = (charges[around[0], around[1], around[2], charge, i] for i in range(4))
        offsets = [there - own for there, own in zip((z, y, x), position, strict=True)]
        square = offsets[0] * offsets[0] + offsets[1] * offsets[1] + offsets[2] * offsets[2]
        rest = 1.0 - square
        is_near = (square < 1.0) & inside[0] & inside[1] & inside[2]
        value = strength * rest * rest / sqrt(square + 1e-3)
        return total + where(is_near, value, 0.0)

    return at.loops((3, 3, 3, CHARGES), 0.0, near)


@internal(charges="f32[d, h, w, 8, 4]")
def lattice(charges: Port) -> object:
    """The points of a cell."""
    return potential.over(*POINTS)(whole(charges))


@graph(charges="f32[d, h, w, 8, 4]")
def cutcp(charges: Port) -> object:
    """The potentials at all points, cell by cell."""
    return lattice.over("d", "h", "w")(whole(charges))
