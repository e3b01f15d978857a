"""The integer simplex method against an enumeration of all vertices."""

from fractions import Fraction
from itertools import combinations
from math import ceil, inf

from hypothesis import given, settings
from hypothesis import strategies as st

from relax_mlir.symbolic.simplex import minimize

BOX = 10**6


def solve_square(equations):
    """The point where all `a . x + c` are zero, by elimination; None if there is not one."""
    size = len(equations)
    rows = [[*map(Fraction, a), Fraction(-c)] for a, c in equations]
    for i in range(size):
        pivot = next((r for r in range(i, size) if rows[r][i]), None)
        if pivot is None:
            return None
        rows[i], rows[pivot] = rows[pivot], rows[i]
        rows[i] = [entry / rows[i][i] for entry in rows[i]]
        for r in range(size):
            if r != i and rows[r][i]:
                factor = rows[r][i]
                rows[r] = [x - factor * y for x, y in zip(rows[r], rows[i], strict=True)]
    return [row[-1] for row in rows]


def dot(lhs, rhs):
    return sum(a * b for a, b in zip(lhs, rhs, strict=True))


def least_by_vertices(costs, rows):
    size = len(costs)
    units = [[int(i == j) for j in range(size)] for i in range(size)]
    halves = [*rows, *((unit, 0) for unit in units), ([-1] * size, BOX)]
    points = [solve_square(chosen) for chosen in combinations(halves, size)]
    values = [dot(costs, x) for x in points if x and all(dot(row, x) + c >= 0 for row, c in halves)]
    if not values:
        return inf
    return -inf if min(values) < -BOX // 10 else ceil(min(values))


@st.composite
def programs(draw):
    size = draw(st.integers(1, 3))
    vector = st.lists(st.integers(-4, 4), min_size=size, max_size=size)
    return draw(vector), draw(st.lists(st.tuples(vector, st.integers(-6, 6)), max_size=4))


@settings(max_examples=300, deadline=None)
@given(programs())
def test_minimum_is_that_of_the_best_vertex(program):
    costs, rows = program
    assert minimize(costs, rows) == least_by_vertices(costs, rows)


def test_empty_program():
    assert minimize([], []) == 0
    assert minimize([], [([], -1)]) == inf
    assert minimize([1], []) == 0
    assert minimize([-1], []) == -inf


def test_fractions_are_rounded_up():
    assert minimize([1], [([2], -1)]) == 1
    assert minimize([3, 3], [([2, 2], -5)]) == 8
    assert minimize([-1], [([-2], 5)]) == -2
