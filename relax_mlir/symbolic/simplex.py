"""Exact linear optimisation over small systems, by the simplex method on integers."""

from math import inf

MAX_PIVOTS = 400


def minimize(costs: list[int], rows: list[tuple[list[int], int]]) -> float:
    """A lower bound, rounded up, of `costs . x` where `x >= 0` and `a . x + c >= 0` for all rows.

    The bound is the least value over the rationals, rounded up to an integer: +inf if no `x`
    satisfies the rows, -inf if the value is unbounded or needs more than `MAX_PIVOTS` steps.
    Source: V. Chvatal, "Linear Programming", 1983, chapters 2 and 3 (dictionaries, two phases,
    Bland's rule); the tableau has integers over one denominator, so the arithmetic is exact.
    """
    tableau = _Tableau(costs, rows)
    if not tableau.make_feasible():
        return inf if tableau.pivots < MAX_PIVOTS else -inf
    return tableau.optimum()


class _Tableau:
    """A dictionary: each basic variable, and the objective, as an affine form of the others.

    `table[i][j] / denominator` is the coefficient of nonbasic variable `nonbasic[j]` in basic
    variable `basic[i]`; the last column has constants, the last row the objective to maximise.
    """

    def __init__(self, costs: list[int], rows: list[tuple[list[int], int]]) -> None:
        width = len(costs)
        self.nonbasic = list(range(width))
        self.basic = list(range(width, width + len(rows)))
        self.table = [[*row, constant] for row, constant in rows]
        self.table.append([-cost for cost in costs] + [0])
        self.denominator = 1
        self.pivots = 0

    def make_feasible(self) -> bool:
        """First phase: False if there is no solution, or no more pivots."""
        rows = self.table[:-1]
        worst = min(range(len(rows)), key=lambda i: rows[i][-1], default=None)
        if worst is None or rows[worst][-1] >= 0:
            return True
        # One artificial variable, -1, relaxes every row, and is then driven to zero.
        for row in self.table:
            row.insert(-1, 1)
        self.table[-1][-2] = 0
        self.nonbasic.append(-1)
        self.table.append([0] * (len(self.nonbasic) - 1) + [-1, 0])
        self.pivot(worst, len(self.nonbasic) - 1)
        if not self.maximize() or self.table[-1][-1] < 0:
            return False
        self.table.pop()
        self.remove_artificial()
        return True

    def remove_artificial(self) -> None:
        if -1 in self.basic:
            basis_row = self.basic.index(-1)
            column = next(j for j, entry in enumerate(self.table[basis_row][:-1]) if entry)
            self.pivot(basis_row, column)
        column = self.nonbasic.index(-1)
        del self.nonbasic[column]
        for row in self.table:
            del row[column]

    def optimum(self) -> float:
        """Second phase: the least cost, rounded up, or -inf."""
        if not self.maximize():
            return -inf
        return -(self.table[-1][-1] // self.denominator)

    def maximize(self) -> bool:
        """Maximises the last row; False if it has no bound or no pivots are left."""
        while self.pivots < MAX_PIVOTS:
            value = self.table[-1]
            entering = [j for j in range(len(self.nonbasic)) if value[j] > 0]
            if not entering:
                return True
            column = min(entering, key=lambda j: self.nonbasic[j])
            leaving = None
            for i in range(len(self.basic)):
                if self.table[i][column] < 0 and (
                    leaving is None or self.leaves_before(i, leaving, column)
                ):
                    leaving = i
            if leaving is None:
                return False
            self.pivot(leaving, column)
        return False

    def leaves_before(self, first: int, second: int, column: int) -> bool:
        a, b = self.table[first], self.table[second]
        lhs, rhs = a[-1] * -b[column], b[-1] * -a[column]
        return lhs < rhs or (lhs == rhs and self.basic[first] < self.basic[second])

    def pivot(self, row: int, column: int) -> None:
        """Exchanges a basic and a nonbasic variable."""
        self.pivots += 1
        old = self.table[row]
        pivot = old[column]
        sign = 1 if pivot > 0 else -1
        denominator = self.denominator
        for i, other in enumerate(self.table):
            if i == row:
                continue
            factor = other[column]
            self.table[i] = [
                sign * (entry * pivot - factor * mine) // denominator
                for entry, mine in zip(other, old, strict=True)
            ]
            self.table[i][column] = sign * factor
        self.table[row] = [-sign * entry for entry in old]
        self.table[row][column] = sign * denominator
        self.denominator = sign * pivot
        self.basic[row], self.nonbasic[column] = self.nonbasic[column], self.basic[row]
