"""ONNX's node tests: each is one node, with inputs and the outputs of the reference.

    python test/python/frontends/onnx/node_suite.py [--dynamic] [--compiled] [--expanded] [PATTERN]

prints how many pass, are refused, and are wrong, and names the latter. `--dynamic` makes each dim
of an input a symbol of its own and omits the shapes of outputs.
"""

import argparse
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import onnx
from onnx.backend.test.case.node import collect_testcases

import relax_mlir
from relax_mlir.errors import RelaxError
from relax_mlir.frontends.onnx import backend

RANDOM = re.compile("bernoulli|training_dropout_(default|mask)|training_dropout$")
"""Cases whose outputs are random: any generator but the reference's has others."""


@cache
def cases(pattern: str = "", expanded: bool = False) -> list[Any]:
    """The cases whose name has a match, with the functions of operators expanded or without."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = collect_testcases(None)
    return [
        case
        for case in found
        if re.search(pattern, case.name)
        and ("_expanded" in case.name) == expanded
        and not RANDOM.search(case.name)
    ]


def outcome(case: Any, dynamic: bool, compiled: bool) -> str:
    """`pass`, or `refused: ` or `wrong: ` with the reason."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    if dynamic:
        forget_dims(model)
    try:
        rep = backend.prepare(model)
        if not compiled:
            rep._compiled = interpreted
        for inputs, outputs in case.data_sets:
            found = rep.run([as_array(each) for each in inputs])
            for got, wanted in zip(found, map(as_array, outputs), strict=True):
                reason = difference(got, wanted, case.rtol, case.atol)
                if reason:
                    return f"wrong: {reason}"
    except RelaxError as error:
        return f"refused: {str(error).splitlines()[0]}"
    return "pass"


def interpreted(imported: Any) -> Callable[..., Any]:
    """A function that interprets a model, instead of compiling it."""
    main = relax_mlir.interpret(imported.module)["main"]
    return lambda *arguments: main(*arguments, *imported.parameters.values())


def forget_dims(model: Any) -> None:
    """Makes each dim of an input a symbol, and omits all other shapes."""
    for index, each in enumerate(model.graph.input):
        if each.type.WhichOneof("value") == "tensor_type":
            for axis, dim in enumerate(each.type.tensor_type.shape.dim):
                dim.Clear()
                dim.dim_param = f"s{index}_{axis}"
    for each in model.graph.output:
        if each.type.WhichOneof("value") == "tensor_type":
            each.type.tensor_type.ClearField("shape")
    del model.graph.value_info[:]


def as_array(value: Any) -> Any:
    """A tensor, or a sequence of them, as arrays."""
    if isinstance(value, onnx.TensorProto):
        return onnx.numpy_helper.to_array(value)
    return [as_array(each) for each in value] if isinstance(value, list | tuple) else value


def difference(got: Any, wanted: Any, rtol: float, atol: float) -> str:
    """How an output differs from the reference's, by the tolerances of ONNX's own runner.

    Two units in the last place are allowed of 16 bits, and one of the greatest element: what is
    expected was rounded at each step, and is no nearer to exact numbers than ours is.
    """
    if isinstance(wanted, list):
        if not isinstance(got, list) or len(got) != len(wanted):
            return "is another sequence"
        return "".join(difference(a, b, rtol, atol) for a, b in zip(got, wanted, strict=True))
    got, wanted = np.asarray(got), np.asarray(wanted)
    if (got.shape, got.dtype) != (wanted.shape, wanted.dtype):
        return f"{got.dtype}{got.shape}, not {wanted.dtype}{wanted.shape}"
    if wanted.dtype.kind in "biu":
        return "" if np.array_equal(got, wanted) else f"{got.ravel()[:4]}, not {wanted.ravel()[:4]}"
    if wanted.dtype.itemsize == 2:
        rtol = max(rtol, 2**-6 if wanted.dtype.name == "bfloat16" else 2**-9)
    a, b = got.astype(np.float64), wanted.astype(np.float64)
    eps = 2.0**-23 if wanted.dtype == np.float32 else 0
    atol = max(atol, eps * np.abs(b[np.isfinite(b)]).max(initial=0))
    is_close = np.isclose(a, b, rtol, atol, equal_nan=True)
    return "" if is_close.all() else f"{a[~is_close][:4]}, not {b[~is_close][:4]}"


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pattern", nargs="?", default="")
    for name in ("dynamic", "compiled", "expanded"):
        parser.add_argument(f"--{name}", action="store_true")
    args = parser.parse_args()
    counts: Counter[str] = Counter()
    for name, result in outcomes(args):
        counts[result.partition(":")[0]] += 1
        if result != "pass":
            print(f"{name}: {result}")
    print(dict(counts))


def outcomes(args: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """The names of the cases and what became of them."""
    for case in cases(args.pattern, args.expanded):
        yield case.name, outcome(case, args.dynamic, args.compiled)


if __name__ == "__main__":
    main()
