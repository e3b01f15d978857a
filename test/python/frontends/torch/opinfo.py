"""PyTorch's own samples of its operators, exported with dynamic dims, interpreted and compared.

    python test/python/frontends/torch/opinfo.py [--samples COUNT] [--log FILE] [--type T] [PATTERN]

prints a line for each operator that is not right on all samples that PyTorch exports, with the
first reason, and counts: right; right where dims are known, but refused where they are symbols;
refused; wrong; random, of which at most dims can be compared; not exportable, which are PyTorch's
refusals. With a log, which has a line of JSON for each operator, operators that are in it are not
run again.
"""

import argparse
import json
import logging
import re
import signal
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree as pytree

from relax_mlir.errors import RelaxError
from relax_mlir.frontends.torch import from_exported_program
from relax_mlir.frontends.torch.types import as_array
from relax_mlir.testing.imported import interpreted

RIGHT, STATIC, REFUSED = "right", "right where dims are known", "refused"
WRONG, UNEXPORTED, RANDOM = "wrong", "not exportable", "random"
DTYPES = (torch.float32, torch.int64, torch.bool, torch.float64, torch.complex64)
UNSET = re.compile(r"^(new_)?empty(_|$)")
"""Operators whose results are whatever memory holds."""


class Model(torch.nn.Module):
    """An operator, as a function of the tensors of a sample."""

    def __init__(self, function: Callable[..., Any], sample: Any) -> None:
        super().__init__()
        self.function = function
        self.process = sample.output_process_fn_grad
        leaves, self.tree = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
        self.leaves = leaves
        self.is_tensor = [isinstance(leaf, torch.Tensor) for leaf in leaves]
        self.inputs = tuple(leaf for leaf in leaves if isinstance(leaf, torch.Tensor))
        self.leaves = [None if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]

    def forward(self, *values: torch.Tensor) -> tuple[Any, ...]:
        """The tensors among the results."""
        own = iter(values)
        pairs = zip(self.leaves, self.is_tensor, strict=True)
        leaves = [next(own) if is_tensor else leaf for leaf, is_tensor in pairs]
        first, args, kwargs = pytree.tree_unflatten(leaves, self.tree)
        results, self.result_tree = pytree.tree_flatten(self.function(first, *args, **kwargs))
        return tuple(each for each in results if isinstance(each, torch.Tensor))

    def unique(self, results: Sequence[torch.Tensor]) -> list[torch.Tensor] | None:
        """What PyTorch's tests compare of results that are not unique, such as eigenvectors."""
        if len(results) != self.result_tree.num_leaves:
            return None
        actual = self.process(pytree.tree_unflatten(list(results), self.result_tree))
        return [each for each in pytree.tree_leaves(actual) if isinstance(each, torch.Tensor)]


class Expired(BaseException):
    """An operator takes too long; nothing on the way may handle it."""


def exported(model: Model, dynamic: bool) -> torch.export.ExportedProgram:
    """A program with as many dynamic dims as PyTorch allows, or with none."""
    dims = tuple({axis: torch.export.Dim.AUTO for axis in range(x.dim())} for x in model.inputs)
    if dynamic:
        try:
            return torch.export.export(model, model.inputs, dynamic_shapes={"values": dims})
        except Exception:
            pass  # where PyTorch needs to know dims
    return torch.export.export(model, model.inputs)


def seeded(model: Model, seed: int) -> tuple[torch.Tensor, ...]:
    """The results for a seed of random numbers; inputs stay as they are."""
    torch.manual_seed(seed)
    return model(*(each.clone() for each in model.inputs))


def draws(program: torch.export.ExportedProgram) -> bool:
    """Whether a program has operators that draw random numbers."""
    targets = [node.target for node in program.graph.nodes]
    operators = [each for each in targets if isinstance(each, torch._ops.OpOverload)]
    return any(torch.Tag.nondeterministic_seeded in each.tags for each in operators)


def outcome(op: Any, sample: Any) -> tuple[str, str]:
    """What becomes of a sample, and the reason."""
    result, reason = compared(op, sample, dynamic=True)
    if result != REFUSED or compared(op, sample, dynamic=False)[0] != RIGHT:
        return result, reason
    return STATIC, reason


def compared(op: Any, sample: Any, dynamic: bool) -> tuple[str, str]:
    """What becomes of a sample with dynamic dims, or with none."""
    model = Model(op.op, sample)
    try:
        wanted, *others = (seeded(model, seed) for seed in range(4))
        is_unset = UNSET.match(op.name) is not None
        is_random = not is_unset and not all(_alike(wanted, other) for other in others)
        program = exported(model, dynamic)
    except Exception as error:
        return UNEXPORTED, f"{type(error).__name__}: {_line(error)}"
    try:
        imported = from_exported_program(program)
        inputs = [*map(_array, model.inputs), *imported.state.values()]
        got = interpreted(imported)(*inputs)
    except RelaxError as error:
        if str(error).startswith("is a program that PyTorch does not decompose"):
            return UNEXPORTED, _line(error)
        return RANDOM if is_random or draws(program) else REFUSED, _line(error)
    except Exception as error:
        return WRONG, f"raises {type(error).__name__}: {_line(error)}"
    results = got if isinstance(got, tuple) else (got,)
    if len(results) < len(wanted):
        return WRONG, f"{len(results)} results, not {len(wanted)}"
    right = RANDOM if is_random else RIGHT
    values_matter = not is_random and not is_unset
    arrays = [np.asarray(each) for each in results[: len(wanted)]]  # inputs it changes come last
    reason = first_difference(arrays, wanted, values_matter)
    if not reason or first_difference(arrays, wanted, False):
        return (WRONG, reason) if reason else (right, "")
    unique, others = model.unique([torch.from_numpy(each) for each in arrays]), model.unique(wanted)
    if not unique or not others:
        return WRONG, reason
    reason = first_difference([_array(each) for each in unique], others, values_matter)
    return (WRONG, reason) if reason else (right, "")


def first_difference(
    arrays: Sequence[np.ndarray], wanted: Sequence[torch.Tensor], values_matter: bool
) -> str:
    """How the first result that differs does; empty if none does."""
    reasons = (difference(a, b, values_matter) for a, b in zip(arrays, wanted, strict=True))
    return next(filter(None, reasons), "")


def _line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), "")[:400]


def _alike(first: Sequence[torch.Tensor], second: Sequence[torch.Tensor]) -> bool:
    return all(
        a.shape == b.shape and torch.allclose(a, b, equal_nan=True)
        for a, b in zip(first, second, strict=True)
    )


def _array(tensor: torch.Tensor) -> np.ndarray:
    return as_array(tensor.detach().clone())


def difference(got: np.ndarray, wanted: torch.Tensor, values_matter: bool) -> str:
    """How a result differs; empty if it does not."""
    if wanted.dtype == torch.bfloat16 and got.dtype.name == "bfloat16":
        got, wanted = got.astype(np.float32), wanted.float()
    expected = as_array(wanted)
    if (got.shape, got.dtype) != (expected.shape, expected.dtype):
        return f"{got.dtype}{list(got.shape)}, not {expected.dtype}{list(expected.shape)}"
    if not values_matter:
        return ""
    if expected.dtype.kind not in "f":
        return "" if np.array_equal(got, expected) else f"{_few(got)}, not {_few(expected)}"
    finite = expected[np.isfinite(expected)]
    scale = max(1.0, float(np.abs(finite).max())) if finite.size else 1.0
    is_close = np.isclose(got, expected, rtol=1e-4, atol=2e-5 * scale, equal_nan=True)
    return "" if is_close.all() else f"{got[~is_close][:3]}, not {expected[~is_close][:3]}"


def _few(array: np.ndarray) -> str:
    return str(array.ravel()[:6])


def samples_of(op: Any, most: int, dtypes: Sequence[torch.dtype]) -> list[Any]:
    """Samples of the first type that an operator takes, from the first to the last."""
    supported = op.supported_dtypes("cpu")
    dtype = next((each for each in dtypes if each in supported), None)
    if dtype is None:
        return []
    torch.manual_seed(0)
    every = list(op.sample_inputs("cpu", dtype, requires_grad=False))
    if not most or most >= len(every):
        return every
    return [every[index] for index in sorted({*np.linspace(0, len(every) - 1, most, dtype=int)})]


def outcomes(
    ops: Sequence[Any], most: int, limit: int, dtypes: Sequence[torch.dtype] = DTYPES
) -> Iterator[tuple[str, str, str, float]]:
    """The outcome of each operator: the worst of its samples."""
    for op in ops:
        start = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, limit)
        try:
            results = [outcome(op, each) for each in samples_of(op, most, dtypes)]
        except Expired:
            results = [(REFUSED, f"takes more than {limit} s")]
        except Exception as error:
            results = [(UNEXPORTED, f"has no samples: {_line(error)}")]
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        random = {reason for result, reason in results if result == RANDOM}
        results = [(RANDOM, why) if why in random and why else (it, why) for it, why in results]
        order = (WRONG, REFUSED, STATIC, RIGHT, RANDOM, UNEXPORTED)
        worst = min(results, key=lambda r: order.index(r[0]), default=(UNEXPORTED, "no type"))
        yield full_name(op), *worst, time.process_time() - start


def full_name(op: Any) -> str:
    """The name of an operator with that of its variant."""
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


def chosen(pattern: str, part: str) -> list[Any]:
    """The operators whose name has a match, or an even part of them."""
    index, count = map(int, part.split("/"))
    return [op for op in op_db if re.search(pattern, full_name(op))][index::count]


def _expired(*_: Any) -> None:
    raise Expired


def logged(path: Path | None) -> dict[str, tuple[str, str, float]]:
    """The outcomes that a log has, by operator."""
    if path is None or not path.exists():
        return {}
    return {name: tuple(rest) for name, *rest in map(json.loads, path.read_text().splitlines())}


def main() -> int:
    """Runs the command line; 1 if something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pattern", nargs="?", default="")
    parser.add_argument("--samples", type=int, default=0, help="at most, for each operator; 0: all")
    parser.add_argument("--part", default="0/1")
    parser.add_argument("--limit", type=int, default=120, help="seconds of CPU for an operator")
    parser.add_argument("--log", type=Path, help="outcomes, to go on from")
    parser.add_argument("--type", default="", help="of elements, such as complex64")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    signal.signal(signal.SIGPROF, _expired)
    known = logged(given.log)
    ops = chosen(given.pattern, given.part)
    dtypes = (getattr(torch, given.type),) if given.type else DTYPES
    counts = Counter(known[name][0] for name in map(full_name, ops) if name in known)
    todo = [op for op in ops if full_name(op) not in known]
    for name, result, reason, seconds in outcomes(todo, given.samples, given.limit, dtypes):
        counts[result] += 1
        if given.log:
            with given.log.open("a") as log:
                print(json.dumps([name, result, reason, round(seconds, 1)]), file=log)
        if result != RIGHT:  # the first reason
            print(f"{name}: {result}: {reason}", flush=True)
    print(dict(counts))
    return int(counts[WRONG] > 0)


if __name__ == "__main__":
    raise SystemExit(main())
