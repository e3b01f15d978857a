"""PyTorch's operators, as a user writes them."""

from collections.abc import Callable, Mapping
from itertools import product

import dataflow_cases
import torch
from torch.nn import functional
from worker import Prepared


class Operators:
    """Each operator is a kernel of the library."""

    version = torch.__version__

    def __init__(self, threads: int) -> None:
        torch.set_num_threads(threads)
        torch.set_num_interop_threads(1)
        torch.set_grad_enabled(False)

    def prepare(self, case: dict) -> Prepared:
        """See `worker.Program`."""
        function = _FUNCTIONS.get(case["kernel"])
        if function is None:
            raise NotImplementedError("has no operators for it")
        arrays = [torch.from_numpy(x) for x in dataflow_cases.arguments(case)]
        if case["kernel"] == "spmv":
            starts, columns, values, x = arrays
            shape = (len(starts) - 1, len(x))
            matrix = torch.sparse_csr_tensor(starts, columns, values, shape)
            return Prepared(lambda: [matrix @ x])
        return Prepared(lambda: [function(*arrays)], finish=lambda y: y.numpy())


def _around(x: torch.Tensor, *steps: tuple[int, ...]) -> list[torch.Tensor]:
    """An image so many steps further, its borders repeated."""
    h, w = x.shape
    padded = functional.pad(x[None, None], (1, 1, 1, 1), mode="replicate")[0, 0]
    return [padded[1 + i : 1 + i + h, 1 + j : 1 + j + w] for i, j in steps]


CROSS = ((0, -1), (0, 1), (-1, 0), (1, 0))


def _stencil(x: torch.Tensor) -> torch.Tensor:
    padded = functional.pad(x[None, None], (1,) * 6, mode="replicate")[0, 0]
    near = padded[:-2, 1:-1, 1:-1] + padded[2:, 1:-1, 1:-1] + padded[1:-1, :-2, 1:-1]
    near = near + padded[1:-1, 2:, 1:-1] + padded[1:-1, 1:-1, :-2] + padded[1:-1, 1:-1, 2:]
    return 0.4 * x + 0.1 * near


def _edges(image: torch.Tensor) -> torch.Tensor:
    row = torch.tensor([0.25, 0.5, 0.25])
    padded = functional.pad(image[None, None], (1, 1, 1, 1), mode="replicate")
    smooth = functional.conv2d(padded, torch.outer(row, row)[None, None])[0, 0]
    near = functional.pad(smooth[None, None], (1, 1, 1, 1), mode="replicate")
    high = functional.max_pool2d(near, 3, 1)[0, 0]
    low = -functional.max_pool2d(-near, 3, 1)[0, 0]
    curved = high + low - 2 * smooth
    most = torch.stack(_around(curved, *CROSS)).amax(0)
    left, right, up, down = _around(smooth, *CROSS)
    steep = torch.hypot(right - left, down - up)
    chosen = (curved <= 0) & (most > 0) & (steep > dataflow_cases.SHARE * steep.max())
    return chosen.float()


def _camera(raw: torch.Tensor) -> torch.Tensor:
    at = dict(zip(steps := [*product((-1, 0, 1), repeat=2)], _around(raw, *steps), strict=True))
    across, along = (at[0, -1] + at[0, 1]) / 2, (at[-1, 0] + at[1, 0]) / 2
    diagonal = (at[-1, -1] + at[-1, 1] + at[1, -1] + at[1, 1]) / 4
    row = (torch.arange(raw.shape[0]) % 2 == 0)[:, None]
    column = (torch.arange(raw.shape[1]) % 2 == 0)[None, :]
    planes = [
        torch.where(row, torch.where(column, raw, across), torch.where(column, along, diagonal)),
        torch.where(row ^ column, raw, (across + along) / 2),
        torch.where(row, torch.where(column, diagonal, along), torch.where(column, across, raw)),
    ]
    calm = []
    for plane in planes:
        a, b, c, d = _around(plane, *CROSS)
        least = torch.minimum(torch.minimum(a, b), torch.minimum(c, d))
        greatest = torch.maximum(torch.maximum(a, b), torch.maximum(c, d))
        calm.append(torch.minimum(torch.maximum(plane, least), greatest))
    colours = torch.tensor(dataflow_cases.COLOURS, dtype=torch.float32)
    mixed = torch.tensordot(colours, torch.stack(calm), 1).clamp(0, 1)
    return mixed.sqrt() * (1.25 - 0.25 * mixed)


_FUNCTIONS: Mapping[str, Callable[..., torch.Tensor]] = {
    "sgemm": torch.matmul,
    "spmv": torch.mv,
    "stencil": _stencil,
    "histogram": lambda x: torch.bincount(x, minlength=dataflow_cases.BINS),
    "edges": _edges,
    "camera": _camera,
}
