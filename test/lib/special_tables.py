"""Prints relax_mlir/decompositions/special/tables.py: Chebyshev's series, computed by mpmath.

python test/lib/special_tables.py > relax_mlir/decompositions/special/tables.py
"""

from collections.abc import Callable, Iterator
from typing import Any

from mpmath import mp, mpf

mp.dps = 50
NODES = 72
LEAST = mpf(2) ** -58
"""Of the greatest coefficient: smaller ones at the end are left out."""
COLUMNS = 18
"""Powers of eta, up to 0.35, in Temme's expansion."""
Function = Callable[[Any], Any]


def series(f: Function, low: Any, high: Any) -> list[float]:
    """Coefficients of f on an interval, of which the first is halved."""
    nodes = [mp.cos(mp.pi * (2 * k + 1) / (2 * NODES)) for k in range(NODES)]
    values = [f((mpf(high) - low) / 2 * t + (mpf(high) + low) / 2) for t in nodes]
    result = []
    for j in range(NODES):
        terms = (
            value * mp.cos(mp.pi * j * (2 * k + 1) / (2 * NODES)) for k, value in enumerate(values)
        )
        result.append(mp.fsum(terms) * 2 / NODES)
    result[0] /= 2
    most = max(abs(c) for c in result)
    while abs(result[-1]) < LEAST * most:
        result.pop()
    return [float(c) for c in result]


def erfcx(x: Any) -> Any:
    """erfc without what makes it small."""
    return mp.exp(x * x) * mp.erfc(x)


def from_infinity(t: Any) -> Any:
    """(1 + 2 x) erfcx(x) of t = (x - 3.75) / (x + 3.75)."""
    x = mpf("3.75") * (1 + t) / (1 - t)
    return (1 + 2 * x) * erfcx(x)


def quantile(p: Any) -> Any:
    """The inverse of the normal distribution, for p below 1/2."""
    target = mp.log(p)
    x = -mp.sqrt(-2 * target) if p < 0.1 else mpf(p - 0.5) * 2.5
    for _ in range(60):
        area = mp.erfc(-x / mp.sqrt(2)) / 2
        step = (mp.log(area) - target) * area / (mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi))
        x -= step
        if abs(step) < mpf(10) ** -40:
            break
    return x


def centre(s: Any) -> Any:
    """quantile(q + 1/2) / q of s = q^2."""
    q = -mp.sqrt(s)
    return quantile(q + mpf(1) / 2) / q


def tail(v: Any) -> Any:
    """Of v = 1 / r, r = sqrt(-2 log p): what is between r and the size of the quantile."""
    return -quantile(mp.exp(-1 / (2 * v * v))) - 1 / v


def hankel(order: int, part: int) -> Function:
    """P, or x Q, of Bessel functions from 8, of w = (8 / x)^2."""

    def f(w: Any) -> Any:
        x = 8 / mp.sqrt(w)
        angle = x - mp.pi * (2 * order + 1) / 4
        j, y = mp.besselj(order, x), mp.bessely(order, x)
        size = mp.sqrt(mp.pi * x / 2)
        if part == 0:
            return size * (j * mp.cos(angle) + y * mp.sin(angle))
        return size * x * (y * mp.cos(angle) - j * mp.sin(angle))

    return f


def of_square(f: Function) -> Function:
    """A function of x^2."""
    return lambda s: f(mp.sqrt(s))


def y0(x: Any) -> Any:
    """Y0 without its logarithm."""
    return mp.bessely(0, x) - 2 / mp.pi * mp.log(x) * mp.besselj(0, x)


def y1(x: Any) -> Any:
    """Y1 / x without logarithm and pole."""
    return (mp.bessely(1, x) - 2 / mp.pi * (mp.log(x) * mp.besselj(1, x) - 1 / x)) / x


def k0(x: Any) -> Any:
    """K0 without its logarithm."""
    return mp.besselk(0, x) + mp.log(x / 2) * mp.besseli(0, x)


def k1(x: Any) -> Any:
    """x K1 without its logarithm."""
    return x * (mp.besselk(1, x) - mp.log(x / 2) * mp.besseli(1, x))


def decaying(order: int) -> Function:
    """e^x sqrt(x) K(x) of v = 2 / x."""
    return lambda v: mp.exp(2 / v) * mp.sqrt(2 / v) * mp.besselk(order, 2 / v)


def airy_decaying(v: Any) -> Any:
    """2 sqrt(pi) x^(1/4) e^zeta Ai(x) of v = 1 / zeta, zeta = 2/3 x^(3/2)."""
    x = (mpf(3) / (2 * v)) ** (mpf(2) / 3)
    return 2 * mp.sqrt(mp.pi) * x ** mpf("0.25") * mp.exp(1 / v) * mp.airyai(x)


def airy_waves(part: int) -> Function:
    """F, or zeta G, of Ai(-x), of w = 1 / zeta^2."""

    def f(w: Any) -> Any:
        zeta = 1 / mp.sqrt(w)
        x = (3 * zeta / 2) ** (mpf(2) / 3)
        size = mp.sqrt(mp.pi) * x ** mpf("0.25")
        a, b = size * mp.airyai(-x), size * mp.airybi(-x)
        sine, cosine = mp.sin(zeta + mp.pi / 4), mp.cos(zeta + mp.pi / 4)
        return a * sine + b * cosine if part == 0 else zeta * (b * sine - a * cosine)

    return f


def log1p_rest(x: Any) -> Any:
    """(log(1 + x) - x) / x^2."""
    return (mp.log1p(x) - x) / (x * x)


def temme(rows: int, columns: int) -> list[list[float]]:
    """Coefficients of eta^n / a^k in the expansion of the incomplete gamma function (DLMF 8.12)."""
    order = columns + 2 * rows + 2
    mu = [mpf(0), mpf(1)]  # lambda - 1 as a power series of eta
    for n in range(2, order + 2):  # mu mu' = eta (1 + mu)
        known = mp.fsum((n + 1 - i) * mu[i] * mu[n + 1 - i] for i in range(2, n))
        mu.append((mu[n - 1] - known) / (n + 1))
    inverse = _reciprocal(mu[1:])  # eta / (lambda - 1)
    row = inverse[1:]  # 1 / (lambda - 1) - 1 / eta
    result = [row]
    for k in range(1, rows):
        derived = [n * row[n] for n in range(1, len(row))]  # from eta^0
        pole = derived[0]  # what gamma_k takes away
        pairs = zip(derived[1:], inverse[1:])
        row = [one - pole * other for one, other in pairs]
        result.append(row)
    return [[float(c) for c in row[:columns]] for row in result]


def _reciprocal(a: list[Any]) -> list[Any]:
    result = [1 / a[0]]
    for n in range(1, len(a)):
        result.append(-mp.fsum(a[i] * result[n - i] for i in range(1, n + 1)) / a[0])
    return result


TABLES = (
    ("ERFCX", from_infinity, -1, 1),
    ("NDTRI_CENTRE", centre, 0, mpf("0.09")),
    ("NDTRI_NEAR", tail, mpf("0.2"), mpf("0.56")),
    ("NDTRI_FAR", tail, mpf("0.075"), mpf("0.2")),
    ("NDTRI_LAST", tail, mpf("0.025"), mpf("0.075")),
    ("J0_NEAR", of_square(lambda x: mp.besselj(0, x)), 0, 9),
    ("J0", of_square(lambda x: mp.besselj(0, x)), 9, 64),
    ("J1_NEAR", of_square(lambda x: mp.besselj(1, x) / x), 0, 9),
    ("J1", of_square(lambda x: mp.besselj(1, x) / x), 9, 64),
    ("Y0", of_square(y0), 0, 64),
    ("Y1", of_square(y1), 0, 64),
    *((f"{'PQ'[part]}{order}", hankel(order, part), 0, 1) for order in (0, 1) for part in (0, 1)),
    ("I0", of_square(lambda x: mp.besseli(0, x)), 0, 4),
    ("I1", of_square(lambda x: mp.besseli(1, x) / x), 0, 4),
    ("K0", of_square(k0), 0, 4),
    ("K1", of_square(k1), 0, 4),
    ("K0_DECAYING", decaying(0), 0, 1),
    ("K1_DECAYING", decaying(1), 0, 1),
    ("AIRY_DECAYING", airy_decaying, 0, mpf("1.5001")),
    ("AIRY_LEFT", mp.airyai, -6, -2),
    ("AIRY_RIGHT", mp.airyai, -2, 1),
    ("AIRY_F", airy_waves(0), 0, mpf("0.01042")),
    ("AIRY_G", airy_waves(1), 0, mpf("0.01042")),
    ("LOG1P_REST", log1p_rest, -0.5, 0.5),
    ("LGAMMA1P", lambda a: mp.loggamma(1 + a) / a, 0, mpf("1.25")),
)


def lines(values: list[float]) -> Iterator[str]:
    """Coefficients as text, up to 96 columns."""
    line = ""
    for text in map(repr, values):
        if len(line) + len(text) > 94:
            yield line
            line = ""
        line += f" {text}" if line else f"    {text}"
    yield line


def main() -> None:
    """Prints the module."""
    print(
        '"""Chebyshev\'s series; test/lib/special_tables.py prints this file and says of what."""'
    )
    print("\nfrom dataclasses import dataclass\n\n")
    print("@dataclass(frozen=True)\nclass Series:")
    print('    """Coefficients of a function on an interval."""\n')
    print("    low: float\n    high: float\n    coefficients: tuple[float, ...]\n\n")
    print("def _series(low: float, high: float, text: str) -> Series:")
    print("    return Series(low, high, tuple(map(float, text.split())))\n\n")
    print("def _rows(count: int, text: str) -> tuple[tuple[float, ...], ...]:")
    print("    values = map(float, text.split())")
    print("    return tuple(zip(*[values] * count, strict=True))\n\n")
    for name, f, low, high in TABLES:
        values = series(f, low, high)
        print(f"{name} = _series(\n    {float(low)},\n    {float(high)},\n" + '    """')
        print(*lines(values), sep="\n")
        print('    """,\n)')
    print(f"TEMME = _rows(\n    {COLUMNS},\n" + '    """')
    print(*lines([c for row in temme(8, COLUMNS) for c in row]), sep="\n")
    print('    """,\n)')
    print('"""Coefficients of eta^n / a^k, a row for each k (DLMF 8.12.9)."""')


if __name__ == "__main__":
    main()
