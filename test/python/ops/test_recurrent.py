"""Recurrent layers against NumPy, one sequence and one element at a time in float64."""

import numpy as np
import pytest
from decomposed import Decomposed, module_of
from harness import NUMPY, Spec, floats, spec, wide

import relax_mlir
from relax_mlir import decompositions as d
from relax_mlir.dialects.graph import ShapeError

T, N, FEATURES, HIDDEN = 5, 3, 4, 6
GATES = {"rnn": 1, "gru": 3, "lstm": 4}
TOLERANCE = {"f64": 1e-12, "f32": 3e-6, "f16": 2e-3, "bf16": 2e-2}


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


ACTIVATIONS = {
    "Affine": lambda x: 0.5 * x + 0.25,
    "Elu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "HardSigmoid": lambda x: np.clip(0.2 * x + 0.5, 0, 1),
    "LeakyRelu": lambda x: np.where(x < 0, 0.01 * x, x),
    "Relu": lambda x: np.maximum(x, 0),
    "ScaledTanh": lambda x: 0.5 * np.tanh(2 * x),
    "Sigmoid": _sigmoid,
    "Softplus": lambda x: np.log1p(np.exp(x)),
    "Softsign": lambda x: x / (1 + np.abs(x)),
    "Tanh": np.tanh,
    "ThresholdedRelu": lambda x: np.where(x > 1, x, 0),
}


class _Direction:
    """One direction of a layer, as the formulas of ONNX have it."""

    def __init__(self, kind, w, r, bias, functions, settings, peepholes) -> None:
        self.kind, self.settings, self.functions = kind, settings, functions
        self.hidden = r.shape[1]
        gates = GATES[kind]
        self.w, self.r = np.split(w, gates), np.split(r, gates)
        bias = np.zeros(2 * len(w)) if bias is None else bias
        self.wb, self.rb = (np.split(b, gates) for b in np.split(bias, 2))
        zeros = np.zeros(3 * self.hidden)
        self.p = np.split(zeros if peepholes is None else peepholes, 3)

    def act(self, index, x):
        limit = self.settings.get("clip")
        return self.functions[index](x if limit is None else np.clip(x, -limit, limit))

    def part(self, i, x, h):
        return self.w[i] @ x + self.wb[i] + self.r[i] @ h + self.rb[i]

    def step(self, x, state):
        h = state[0]
        if self.kind == "rnn":
            return [self.act(0, self.part(0, x, h))]
        if self.kind == "gru":
            z, r = (self.act(0, self.part(i, x, h)) for i in (0, 1))
            if self.settings.get("linear_before_reset"):
                inner = self.w[2] @ x + self.wb[2] + r * (self.r[2] @ h + self.rb[2])
            else:
                inner = self.part(2, x, r * h)
            return [(1 - z) * self.act(1, inner) + z * h]
        c = state[1]
        i = self.act(0, self.part(0, x, h) + self.p[0] * c)
        f = self.act(0, self.part(2, x, h) + self.p[2] * c)
        f = 1 - i if self.settings.get("input_forget") else f
        c = f * c + i * self.act(1, self.part(3, x, h))
        o = self.act(0, self.part(1, x, h) + self.p[1] * c)
        return [o * self.functions[2](c), c]


def _reference(kind, arrays, settings):
    """y and the last states, of x [t, n, features] and states [directions, n, hidden]."""
    x, w, r = (wide(arrays[name]) for name in ("x", "w", "r"))
    t, n, _ = x.shape
    count, hidden = len(w), r.shape[2]
    states = ["h", "c"] if kind == "lstm" else ["h"]
    y = np.zeros((t, count, n, hidden))
    last = [np.zeros((count, n, hidden)) for _ in states]
    names = settings.get("activations") or {
        "rnn": ["Tanh"], "gru": ["Sigmoid", "Tanh"], "lstm": ["Sigmoid", "Tanh", "Tanh"]
    }[kind] * count  # fmt: skip
    functions = np.array([ACTIVATIONS[name] for name in names]).reshape(count, -1)
    for k in range(count):
        own = [wide(arrays[name])[k] if name in arrays else None for name in ("bias", "peepholes")]
        cell = _Direction(kind, w[k], r[k], own[0], functions[k], settings, own[1])
        backwards = k == 1 or settings.get("direction") == "reverse"
        for b in range(n):
            state = [
                wide(arrays[f"initial_{s}"])[k, b] if f"initial_{s}" in arrays else np.zeros(hidden)
                for s in states
            ]
            length = (
                min(max(int(arrays["sequence_lens"][b]), 0), t) if "sequence_lens" in arrays else t
            )
            steps = range(length)
            for i in reversed(steps) if backwards else steps:
                state = cell.step(x[i, b], state)
                y[i, k, b] = state[0]
            for held, value in zip(last, state):
                held[k, b] = value
    return [y, *last]


def _arrays(kind, dtype, names, count, t=T, n=N):
    """Operands by name."""
    rows = GATES[kind] * HIDDEN
    shapes = {
        "x": (t, n, FEATURES), "w": (count, rows, FEATURES), "r": (count, rows, HIDDEN),
        "bias": (count, 2 * rows), "initial_h": (count, n, HIDDEN),
        "initial_c": (count, n, HIDDEN), "peepholes": (count, 3 * HIDDEN),
    }  # fmt: skip
    arrays = {
        name: floats(shapes[name], dtype, -1, 1)
        for name in ("x", "w", "r", *names)
        if name != "sequence_lens"
    }
    if "sequence_lens" in names:
        arrays["sequence_lens"] = np.array([3, 0, 9, 1, 5][:n], np.int32)
    return arrays


def _specs(kind, dtype, names, count) -> list[Spec]:
    rows = GATES[kind] * HIDDEN
    specs = {
        "x": spec(dtype, "t", "n", FEATURES), "w": spec(dtype, count, rows, FEATURES),
        "r": spec(dtype, count, rows, HIDDEN), "bias": spec(dtype, count, 2 * rows),
        "initial_h": spec(dtype, count, "n", HIDDEN),
        "initial_c": spec(dtype, count, "n", HIDDEN),
        "peepholes": spec(dtype, count, 3 * HIDDEN), "sequence_lens": spec("i32", "n"),
    }  # fmt: skip
    return [specs[name] for name in ("x", "w", "r", *names)]


def _check(kind, names, settings, dtype="f64", sizes=((T, N), (1, 1), (0, 2), (4, 5))) -> None:
    count = 2 if settings.get("direction") == "bidirectional" else 1
    named = ("x", "w", "r", *names)
    run = Decomposed(
        lambda *v: getattr(d, kind)(*v[:3], **dict(zip(named[3:], v[3:])), **settings),
        *_specs(kind, dtype, names, count),
    )
    for t, n in sizes:
        arrays = _arrays(kind, dtype, names, count, t, n)
        found = run(*(arrays[name] for name in named))
        for a, b in zip(found, _reference(kind, arrays, settings), strict=True):
            assert a.dtype == NUMPY[dtype]
            np.testing.assert_allclose(wide(a), b, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("kind", ["rnn", "gru", "lstm"])
def test_directions(kind: str, direction: str) -> None:
    states = ["initial_h", "initial_c"] if kind == "lstm" else ["initial_h"]
    _check(kind, ["bias", "sequence_lens", *states], {"direction": direction})


@pytest.mark.parametrize("kind", ["rnn", "gru", "lstm"])
def test_only_what_is_needed(kind: str) -> None:
    _check(kind, [], {})


@pytest.mark.parametrize("names", [[], ["bias", "initial_h"]])
def test_reset_behind_the_product(names) -> None:
    _check("gru", names, {"linear_before_reset": True, "clip": 0.7})


@pytest.mark.parametrize("settings", [{}, {"input_forget": True}, {"clip": 0.4}])
def test_peepholes(settings) -> None:
    _check("lstm", ["bias", "peepholes", "initial_c"], settings)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name: str) -> None:
    factors = {"Affine": (0.5, 0.25), "ScaledTanh": (0.5, 2)}.get(name)
    given = name if factors is None else d.recurrent.activation_of(name, *factors)
    arrays = _arrays("rnn", "f64", ["bias"], 1)
    run = Decomposed(
        lambda x, w, r, b: d.rnn(x, w, r, bias=b, activations=[given]),
        *_specs("rnn", "f64", ["bias"], 1),
    )
    wanted = _reference("rnn", arrays, {"activations": [name]})
    for found, value in zip(run(*arrays.values()), wanted, strict=True):
        np.testing.assert_allclose(found, value, rtol=1e-12, atol=1e-12)


def test_activations_of_each_direction() -> None:
    names = ["Sigmoid", "Tanh", "Softsign", "HardSigmoid", "Relu", "Tanh"]
    _check("lstm", ["bias"], {"direction": "bidirectional", "activations": names})


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
def test_types(dtype: str) -> None:
    _check("lstm", ["bias", "initial_h"], {}, dtype, [(T, N)])


@pytest.mark.parametrize("kind", ["gru", "lstm"])
def test_batch_first(kind: str) -> None:
    names = ["bias", "initial_h", "sequence_lens"]
    settings = {"direction": "bidirectional", "batch_first": True}
    specs = _specs(kind, "f64", names, 2)
    specs[0], specs[4] = spec("f64", "n", "t", FEATURES), spec("f64", "n", 2, HIDDEN)
    run = Decomposed(
        lambda x, w, r, b, h, s: getattr(d, kind)(
            x, w, r, bias=b, initial_h=h, sequence_lens=s, **settings
        ),
        *specs,
    )
    arrays = _arrays(kind, "f64", names, 2)
    y, *states = _reference(kind, arrays, settings)
    wanted = [y.transpose(2, 0, 1, 3), *(s.transpose(1, 0, 2) for s in states)]
    values = [v.swapaxes(0, 1).copy() if k in ("x", "initial_h") else v for k, v in arrays.items()]
    for found, value in zip(run(*values), wanted, strict=True):
        np.testing.assert_allclose(found, value, rtol=1e-12, atol=1e-12)


X, W, R = spec("f32", "t", 2, 4), spec("f32", 1, 24, 4), spec("f32", 1, 24, 6)


@pytest.mark.parametrize(
    ("build", "specs", "message"),
    [
        (lambda *v: d.lstm(*v, direction="both"), [X, W, R], "expects a direction of forward"),
        (lambda *v: d.lstm(*v, clip=-1.0), [X, W, R], "expects a positive limit, but got -1"),
        (lambda *v: d.lstm(*v, activations=["Tanh"]), [X, W, R], "expects 3 activations"),
        (lambda *v: d.rnn(*v, activations=["Cos"]), [X, spec("f32", 1, 6, 4), spec("f32", 1, 6, 6)],
         "expects one of Affine"),
        (d.gru, [X, W, R], r"expects w of dims \[1, 18, 4\], but got \[1, 24, 4\]"),
        (lambda *v: d.lstm(*v, direction="bidirectional"), [X, W, R], r"w of dims \[2, 24, 4\]"),
        (d.lstm, [X, W, spec("f64", 1, 24, 6)], "expects floats of one type"),
        (d.lstm, [spec("f32", "t", 4), W, R], "expects x of rank 3"),
        (lambda x, w, r, b: d.lstm(x, w, r, bias=b), [X, W, R, spec("f32", 1, 24)],
         r"expects bias of dims \[1, 48\]"),
        (lambda x, w, r, s: d.lstm(x, w, r, sequence_lens=s), [X, W, R, spec("f32", 2)],
         "expects integer lengths"),
        (lambda x, w, r, s: d.lstm(x, w, r, initial_c=s), [X, W, R, spec("f32", 2, 1, 6)],
         r"expects initial_c of dims \[1, 2, 6\]"),
    ],
)  # fmt: skip
def test_what_is_refused(build, specs, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        module_of({"main": (build, specs)})


def test_factors_that_an_activation_has_not() -> None:
    with pytest.raises(ShapeError, match="Tanh has 0 factors, but got 1"):
        d.recurrent.activation_of("Tanh", 2.0)


def test_weights_that_are_packed_once() -> None:
    """Those of the products in the loop too: what each step reads is made of parameters alone."""
    specs = [spec("f32", "t", "n", 40), spec("f32", 1, 4 * 33, 40), spec("f32", 1, 4 * 33, 33)]
    text = module_of({"main": (d.lstm, specs)})
    text = text.replace(") {\n", ") attributes {graph.num_inputs = 1 : i64} {\n", 1)
    executable = relax_mlir.compile(text, opt_level=3)
    generator = np.random.default_rng(0)
    w, r = (generator.uniform(-0.3, 0.3, (1, 4 * 33, size)) for size in (40, 33))
    packed = executable["main_params"](w.astype(np.float32), r.astype(np.float32))
    assert [x.ndim for x in packed] == [3, 3]  # panels
    for t, n in ((1, 1), (5, 17), (3, 0), (0, 2)):
        x = generator.uniform(-1, 1, (t, n, 40)).astype(np.float32)
        arrays = {"x": x, "w": w.astype(np.float32), "r": r.astype(np.float32)}
        results = executable["main"](x, *packed)
        for found, wanted in zip(results, _reference("lstm", arrays, {}), strict=True):
            np.testing.assert_allclose(found, wanted, atol=3e-6)
