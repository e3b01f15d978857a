"""Random models of a few nodes, against ONNX Runtime, or the reference of the package `onnx`.

    python test/python/frontends/onnx/random_models.py [--compiled] [--only OP] FIRST COUNT

prints how many seeds pass, are refused and are wrong, and names the latter with their nodes.
"""

import argparse
import random
from collections import Counter
from typing import Any

import numpy as np
import onnx
import random_layers  # noqa: F401  # registers recipes
import random_nodes  # noqa: F401  # registers recipes
from model_maker import RECIPES, Arrays, Maker, is_finite, model_of, reference, runtime

import relax_mlir
from relax_mlir.errors import RelaxError
from relax_mlir.frontends.onnx import from_onnx

UNTRUSTED = (
    *("BatchNormalization", "GRU", "GlobalMaxPool", "Hardmax", "InstanceNormalization", "LRN"),
    *("LSTM", "LogSoftmax", "LpNormalization", "QLinearMatMul", "RNN", "ReverseSequence"),
    "DynamicQuantizeLinear",  # of zeros
    *("ConvTranspose", "ReduceSumSquare", "Softmax", "Unique", "Unsqueeze"),
)
"""Operators of which the reference of `onnx` differs from ONNX Runtime, in old versions or all."""


def random_model(seed: int, only: str = "") -> tuple[Any, list[tuple[Arrays, list[np.ndarray]]]]:
    """A model, and inputs with the outputs of the reference: of the sizes it was made for, and
    of others, where the reference takes them.
    """
    rng = random.Random(seed)
    maker = Maker(rng, rng.randint(7, 21))
    left_out = () if runtime() else UNTRUSTED
    names = sorted(n for n in RECIPES if n.startswith(only) and n not in left_out)
    for _ in range(200):
        if len(maker.nodes) >= rng.randint(1 if only else 2, 5):
            break
        kept = dict(maker.inputs), dict(maker.values), dict(maker.constants), [*maker.nodes]
        try:
            made = RECIPES[rng.choice(names)](maker)
        except Exception:
            made = None
        if made is None:
            maker.inputs, maker.values, maker.constants, maker.nodes = kept
    return _finished(maker)


def _finished(maker: Maker) -> tuple[Any, list[tuple[Arrays, list[np.ndarray]]]]:
    rng = maker.rng
    used = {name for node in maker.nodes for name in node.input}
    inputs = {name: value for name, value in maker.inputs.items() if name in used}
    constants = {name: value for name, value in maker.constants.items() if name in used}
    if rng.random() < 0.15:  # all of it is computed during import, as far as that goes
        inputs, constants = {}, {**constants, **inputs}
    results = [name for node in maker.nodes for name in node.output]
    outputs = [n for n in results if n not in used or rng.random() < 0.3] or results[-1:]
    symbolic, shared = rng.random() < 0.6, rng.random() < 0.5
    names: dict[tuple[str, int], int | str] = {}

    def dim(name: str, axis: int, extent: int) -> int | str:
        if name in maker.fixed:
            return names.setdefault((name, axis), extent)
        free = f"d{extent}" if shared else f"{name}_{axis}"
        return names.setdefault((name, axis), free if symbolic and rng.random() < 0.8 else extent)

    model = model_of(maker.nodes, inputs, constants, outputs, maker.opset, dim)
    trials = [(inputs, [maker.values[name] for name in outputs])]
    for _ in range(2 if symbolic else 0):
        sizes = {
            d: maker.extent() if not maker.grows else _extents(inputs, names, d) + rng.randint(0, 3)
            for d in names.values()
            if isinstance(d, str)
        }
        other = {
            name: maker.array(
                [sizes.get(names[name, i], n) for i, n in enumerate(x.shape)], x.dtype
            )
            for name, x in inputs.items()
        }
        try:
            whole = model_of(maker.nodes, inputs, constants, results, maker.opset, dim)
            found = dict(zip(results, reference(whole, other), strict=True))
        except Exception:
            continue
        if all(is_finite(value) for name, value in found.items() if name in used):
            trials.append((other, [found[name] for name in outputs]))
    return model, trials


def _extents(inputs: Arrays, names: dict[tuple[str, int], int | str], dim: str) -> int:
    """The extent of a dim in the inputs that the model was made for."""
    return next(inputs[name].shape[axis] for (name, axis), own in names.items() if own == dim)


def differs(got: np.ndarray, wanted: np.ndarray) -> str:
    """How two outputs differ."""
    if (got.shape, got.dtype) != (wanted.shape, wanted.dtype):
        return f"{got.dtype}{got.shape}, not {wanted.dtype}{wanted.shape}"
    if wanted.dtype.kind in "biu":
        return "" if np.array_equal(got, wanted) else f"{got.ravel()[:6]}, not {wanted.ravel()[:6]}"
    a, b = got.astype(np.float64), wanted.astype(np.float64)
    finite = np.abs(b[np.isfinite(b)])
    rtol = 4e-3 if wanted.dtype.itemsize == 2 else 2e-4
    with np.errstate(all="ignore"):
        close = np.isclose(a, b, rtol, rtol * float(finite.max(initial=0)) + 1e-6, equal_nan=True)
    return "" if close.all() else f"{a[~close][:6]}, not {b[~close][:6]}"


def outcome(seed: int, compiled: bool = False, only: str = "") -> str:
    """`pass`, or `refused: ` or `wrong: ` with the reason."""
    model, trials = random_model(seed, only)
    result = "pass"
    for inputs, wanted in trials:
        try:
            imported = from_onnx(model)
            if compiled:
                main = relax_mlir.compile(imported)["main"]
                arguments = [inputs[name] for name in imported.inputs]
            else:
                main = relax_mlir.interpret(imported.module)["main"]
                arguments = [inputs[name] for name in imported.inputs]
                arguments += imported.parameters.values()
            got = main(*arguments)
        except RelaxError as error:
            result = f"refused: {str(error).splitlines()[0]}"
            continue
        got = got if isinstance(got, tuple) else (got,)
        for index, (a, b) in enumerate(zip(got, wanted, strict=True)):
            reason = differs(np.asarray(a), np.asarray(b))
            if reason:
                return f"wrong: output {index}: {reason}"
    return result


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("first", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("--compiled", action="store_true")
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    counts: Counter[str] = Counter()
    for seed in range(args.first, args.first + args.count):
        try:
            result = outcome(seed, args.compiled, args.only)
        except Exception as error:
            result = f"wrong: {type(error).__name__}: {error}"
        counts[result.partition(":")[0]] += 1
        if result != "pass":
            print(f"{seed}: {result}", flush=True)
        if result.startswith("wrong"):
            model, trials = random_model(seed, args.only)
            print(onnx.printer.to_text(model), flush=True)
            print([{n: x.shape for n, x in inputs.items()} for inputs, _ in trials], flush=True)
    print(dict(counts))


if __name__ == "__main__":
    main()
