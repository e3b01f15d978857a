"""Dataflow benchmarks to measure: their arguments, and their results in float64.

A case is a dict that goes to every program as JSON: `kernel`, the extents `dims`, and `seed`.
Arguments have the order of the graph's parameters; results are one array, planes in front.
"""

from collections.abc import Callable, Mapping
from itertools import product

import numpy as np

TOLERANCE = {"f32": 1e-4}
BINS = 256
DIRECTIONS = np.array(
    [e for e in product((0, 1, -1), repeat=3) if sum(map(abs, e)) <= 2]
)  # z, y, x; the first one is rest
WEIGHTS = np.array([1 / 3, 1 / 18, 1 / 36])[np.abs(DIRECTIONS).sum(1)]
OMEGA = 1.2
POINTS = (4, 4, 16)
CHARGES = 8
COLOURS = np.array([[1.6, -0.4, -0.2], [-0.3, 1.5, -0.2], [-0.1, -0.5, 1.6]])
SHARE = 0.25


def _case(kernel: str, *dims: int) -> dict:
    return {"kernel": kernel, "dims": list(dims), "dtype": "f32", "seed": sum(dims) % 1000}


CASES = (
    *(_case("sgemm", *dims) for dims in ((1024, 1024, 1024), (500, 1000, 300))),
    *(_case("spmv", *dims) for dims in ((100_000, 20), (20_000, 100))),
    *(_case("stencil", *dims) for dims in ((64, 128, 128), (128, 256, 250))),
    *(_case("lbm", *dims) for dims in ((32, 32, 32), (50, 100, 100))),
    *(_case("bfs", *dims) for dims in ((100_000, 8), (300_000, 16))),
    *(_case("histogram", *dims) for dims in ((1 << 20,), (10_000_000,))),
    *(_case("cutcp", *dims) for dims in ((8, 8, 8), (12, 16, 20))),
    *(_case("edges", *dims) for dims in ((480, 640), (1080, 1920))),
    *(_case("camera", *dims) for dims in ((480, 640), (1080, 1920))),
)


def label(case: dict) -> str:
    """The case as a table shows it."""
    return f"{case['kernel']} {'x'.join(map(str, case['dims']))}"


def arguments(case: dict) -> list[np.ndarray]:
    """Random arguments."""
    generator = np.random.default_rng(case["seed"])
    return _ARGUMENTS[case["kernel"]](generator, *case["dims"])


def reference(case: dict) -> np.ndarray:
    """The result in float64."""
    arrays = arguments(case)
    exact = [x.astype(np.float64) if x.dtype == np.float32 else x for x in arrays]
    return np.asarray(PROGRAMS[case["kernel"]](*exact), np.float64)


def result_shape(case: dict) -> tuple[int, ...]:
    """The shape of the result."""
    dims = tuple(case["dims"])
    shapes = {
        "sgemm": dims[:2], "spmv": dims[:1], "lbm": (*dims, 19), "bfs": dims[:1],
        "histogram": (BINS,), "cutcp": (*dims, *POINTS), "camera": (3, *dims),
    }  # fmt: skip
    return shapes.get(case["kernel"], dims)


def result_type(case: dict) -> type:
    """The element type of the result."""
    return np.int32 if case["kernel"] in ("bfs", "histogram") else np.float32


def traffic(case: dict) -> int:
    """Bytes of the arguments and the result."""
    result = np.prod(result_shape(case), dtype=int) * np.dtype(result_type(case)).itemsize
    return int(result) + sum(x.nbytes for x in arguments(case))


def _normal(generator: np.random.Generator, *dims: int) -> np.ndarray:
    return generator.standard_normal(dims, np.float32)


def _sparse(generator: np.random.Generator, rows: int, degree: int) -> tuple[np.ndarray, ...]:
    """Starts of rows and columns of a square matrix, of up to twice `degree` elements a row."""
    lengths = generator.integers(0, 2 * degree + 1, rows)
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    columns = generator.integers(0, max(rows, 1), starts[-1]).astype(np.int32)
    return starts, columns


def _spmv_arguments(generator: np.random.Generator, rows: int, degree: int) -> list[np.ndarray]:
    starts, columns = _sparse(generator, rows, degree)
    return [starts, columns, _normal(generator, len(columns)), _normal(generator, rows)]


def _lbm_arguments(generator: np.random.Generator, *dims: int) -> list[np.ndarray]:
    noise = generator.uniform(0.9, 1.1, (*dims, 19))
    return [(WEIGHTS * noise).astype(np.float32)]


def _cutcp_arguments(generator: np.random.Generator, *dims: int) -> list[np.ndarray]:
    charges = generator.random((*dims, CHARGES, 4), np.float32)
    for axis, extent in enumerate(dims):
        shape = [extent if i == axis else 1 for i in range(4)]
        charges[..., axis] += np.arange(extent, dtype=np.float32).reshape(shape)
    charges[..., 3] -= 0.5
    return [charges]


_ARGUMENTS: Mapping[str, Callable[..., list[np.ndarray]]] = {
    "sgemm": lambda g, m, n, k: [_normal(g, m, k), _normal(g, k, n)],
    "spmv": _spmv_arguments,
    "stencil": lambda g, *dims: [_normal(g, *dims)],
    "lbm": _lbm_arguments,
    "bfs": lambda g, n, degree: list(_sparse(g, n, degree)),
    "histogram": lambda g, n: [g.integers(0, BINS, n).astype(np.int32)],
    "cutcp": _cutcp_arguments,
    "edges": lambda g, *dims: [g.integers(0, 256, dims).astype(np.float32) / 256],
    "camera": lambda g, *dims: [g.random(dims, np.float32)],
}


def shifted(x: np.ndarray, *steps: int) -> np.ndarray:
    """The elements so many steps further along the first dims; those outside are clamped."""
    for axis, step in enumerate(steps):
        if step:
            at = np.clip(np.arange(x.shape[axis]) + step, 0, max(x.shape[axis] - 1, 0))
            x = np.take(x, at, axis)
    return x


def _spmv(starts: np.ndarray, columns: np.ndarray, values: np.ndarray, x: np.ndarray) -> np.ndarray:
    rows = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    return np.bincount(rows, values * x[columns], len(starts) - 1)


def _stencil(x: np.ndarray) -> np.ndarray:
    steps = ((1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1), (0, 0, -1))
    return 0.4 * x + 0.1 * np.sum([shifted(x, *step) for step in steps], 0)


def _lbm(f: np.ndarray) -> np.ndarray:
    pulled = np.stack([shifted(f[..., q], *-e) for q, e in enumerate(DIRECTIONS)], -1)
    mass = pulled.sum(-1, keepdims=True)
    speed = pulled @ DIRECTIONS / mass
    along = speed @ DIRECTIONS.T
    rest = 1 - 1.5 * (speed**2).sum(-1, keepdims=True)
    return (1 - OMEGA) * pulled + OMEGA * WEIGHTS * mass * (rest + 3 * along + 4.5 * along**2)


def _bfs(starts: np.ndarray, neighbours: np.ndarray) -> np.ndarray:
    """Levels by edges v -> u, where u is in the list of v and is reached before it."""
    levels = np.full(len(starts) - 1, -1)
    levels[:1] = 0
    owners = np.repeat(np.arange(len(levels)), np.diff(starts))
    for last in range(len(levels)):
        new = owners[(levels[neighbours] == last) & (levels[owners] < 0)]
        if not len(new):
            break
        levels[new] = last + 1
    return levels


def _cutcp(charges: np.ndarray) -> np.ndarray:
    dims = charges.shape[:3]
    axes = [np.arange(n)[:, None] + np.arange(p) / p for n, p in zip(dims, POINTS, strict=True)]
    own = [axes[0][:, None, None, :, None, None], axes[1][None, :, None, None, :, None],
           axes[2][None, None, :, None, None, :]]  # fmt: skip
    result = np.zeros((*dims, *POINTS))
    for step in product((-1, 0, 1), repeat=3):
        near = shifted(charges, *step)
        for axis, s in enumerate(step):  # cells outside have no charges
            at = np.arange(dims[axis]) + s
            outside = np.moveaxis(near[..., 3], axis, 0)
            outside[(at < 0) | (at >= dims[axis])] = 0
        for charge in range(CHARGES):
            *position, strength = np.moveaxis(near[..., charge, :], -1, 0)[..., None, None, None]
            square = sum((p - o) ** 2 for p, o in zip(position, own, strict=True))
            within = strength * (1 - square) ** 2 / np.sqrt(square + 1e-3)
            result += np.where(square < 1, within, 0)
    return result


def _edges(image: np.ndarray) -> np.ndarray:
    rows = 0.5 * image + 0.25 * (shifted(image, 1) + shifted(image, -1))
    smooth = 0.5 * rows + 0.25 * (shifted(rows, 0, 1) + shifted(rows, 0, -1))
    around = [shifted(smooth, *step) for step in product((0, 1, -1), repeat=2)]
    curved = np.max(around, 0) + np.min(around, 0) - 2 * smooth
    cross = ((0, 1), (0, -1), (1, 0), (-1, 0))
    most = np.max([shifted(curved, *step) for step in cross], 0)
    crossing = (curved <= 0) & (most > 0)
    dx, dy = (shifted(smooth, *s) - shifted(smooth, *(-i for i in s)) for s in ((0, 1), (1, 0)))
    steep = np.hypot(dx, dy)
    return crossing & (steep > SHARE * steep.max(initial=0))


def _camera(raw: np.ndarray) -> np.ndarray:
    at = {step: shifted(raw, *step) for step in product((-1, 0, 1), repeat=2)}
    across, along = (at[0, -1] + at[0, 1]) / 2, (at[-1, 0] + at[1, 0]) / 2
    diagonal = (at[-1, -1] + at[-1, 1] + at[1, -1] + at[1, 1]) / 4
    row, column = (i % 2 == 0 for i in np.indices(raw.shape))
    planes = [
        np.where(row, np.where(column, raw, across), np.where(column, along, diagonal)),
        np.where(row ^ column, raw, (across + along) / 2),
        np.where(row, np.where(column, diagonal, along), np.where(column, across, raw)),
    ]
    calm = [_denoised(plane) for plane in planes]
    mixed = np.clip(np.tensordot(COLOURS, calm, 1), 0, 1)
    return np.sqrt(mixed) * (1.25 - 0.25 * mixed)


def _denoised(x: np.ndarray) -> np.ndarray:
    near = [shifted(x, *step) for step in ((0, 1), (0, -1), (1, 0), (-1, 0))]
    return np.clip(x, np.min(near, 0), np.max(near, 0))


PROGRAMS: Mapping[str, Callable[..., np.ndarray]] = {
    "sgemm": np.matmul,
    "spmv": _spmv,
    "stencil": _stencil,
    "lbm": _lbm,
    "bfs": _bfs,
    "histogram": lambda x: np.bincount(x, minlength=BINS),
    "cutcp": _cutcp,
    "edges": _edges,
    "camera": _camera,
}
"""What each benchmark computes, in the types of its arguments."""
