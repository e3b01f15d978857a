"""The comparison with other programs: `benchmarks/llm.py`'s cases, checks and figures."""

import math
import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).resolve().parents[3] / "benchmarks"
MODULES = ("llm_model", "llm_peers", "llm_results", "peers", "scaling", "interleaved", "worker")


@pytest.fixture
def benchmarks(monkeypatch):
    """Lets tests import what lies beside the commands, and forgets it again."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(FOLDER))
    yield
    for name in set(sys.modules) - before:
        if name.partition(".")[0] in MODULES:
            del sys.modules[name]


def recorder():
    from peers.llm_decoder import Decoder

    class Recorder(Decoder):
        """Its logits are the tokens in its caches, so that they tell what was run."""

        def __init__(self, weights, work, threads):
            self.tokens = []
            self.fed = 0

        def append(self, tokens):
            assert tokens
            self.tokens += tokens
            self.fed += len(tokens)

        def truncate(self, length):
            assert length <= len(self.tokens)
            del self.tokens[length:]

        def logits(self):
            padded = self.tokens + [-1] * (1000 - len(self.tokens))
            return np.array(padded, np.float32)

    return Recorder


def program():
    from peers.llm_decoder import Program

    return Program(recorder(), "1", 1)


COMMON = {"weights": "f32", "work": "."}


def seen(logits):
    return [int(value) for value in logits if value >= 0]


@pytest.mark.usefixtures("benchmarks")
def test_cases_begin_with_the_context_that_they_name():
    made = program()
    from peers.llm_decoder import fixed_tokens

    cases = [
        ({"prompt": 7}, fixed_tokens(7)),
        ({"generated": 3, "context": 5}, [*fixed_tokens(5), *fixed_tokens(3)]),
        ({"generated": 4, "context": 0}, fixed_tokens(4)),
    ]
    prepared = [(made.prepare({**case, **COMMON}), expected) for case, expected in cases]
    # In any order, and again: each finds the caches as another case left them.
    for index in (0, 1, 1, 2, 0, 2, 1, 1):
        case, expected = prepared[index]
        case.reset()
        assert seen(case.run()[0]) == expected


@pytest.mark.usefixtures("benchmarks")
def test_check_answers_behind_prompts_and_steps(tmp_path):
    tokens = np.random.default_rng().integers(0, 100, 30)
    np.save(tmp_path / "tokens.npy", tokens)
    case = {"check": str(tmp_path / "tokens.npy"), "prompts": [5, 2, 30], "steps": 4}
    rows = program().prepare({**case, **COMMON}).run()[0]
    lengths = [5, 2, 30, 6, 7, 8, 9]
    assert [seen(row) for row in rows] == [tokens[:length].tolist() for length in lengths]


@pytest.mark.usefixtures("benchmarks")
def test_agreement_tells_right_from_wrong():
    import llm_model

    generator = np.random.default_rng()
    reference = generator.standard_normal((llm_model.CHECKED, 50)).astype(np.float32)
    first = llm_model.PROMPTS[0]
    rows = [n - 1 for n in llm_model.PROMPTS] + [*range(first, first + llm_model.STEPS)]
    right = llm_model.agreement(reference[rows], reference)
    assert right.is_right("f32")
    assert right.equal == right.of == (len(llm_model.PROMPTS), llm_model.STEPS)
    # Steps that are off by one position, with prompts that are right.
    shifted = reference[rows].copy()
    shifted[len(llm_model.PROMPTS) :] = np.roll(shifted[len(llm_model.PROMPTS) :], 1, axis=0)
    assert not llm_model.agreement(shifted, reference).is_right("native")


@pytest.mark.usefixtures("benchmarks")
def test_divergence_is_that_of_the_definition():
    import llm_model

    generator = np.random.default_rng()
    a, b = generator.standard_normal((2, 3, 11)) * 4
    p, q = (np.exp(each) / np.exp(each).sum(-1, keepdims=True) for each in (a, b))
    np.testing.assert_allclose(llm_model.divergence(a, b), (p * np.log(p / q)).sum(-1), rtol=1e-9)


@pytest.mark.usefixtures("benchmarks")
def test_rows_compare_within_rounds(tmp_path):
    from llm_results import Block, Row, load_blocks, report

    row = Row("tg8@0", 8, 2, (1.0, 2.0, 4.0), (0.5, 1.5, 1.0), 1.05, (10e9, 5e9, 2.5e9), 1.25e9)
    assert row.ratio[1] == 2.0  # 4 * 0.5, 4 * 0.75, 4 * 0.25
    assert row.rates == (4.0, 2.0)
    assert row.share is not None
    assert math.isclose(row.share, 1.0)
    block = Block("f32", 2, "a peer", "1", "right", [row])
    Block("f32", 2, "a peer", "", "absent: no module").save(tmp_path)
    block.save(tmp_path)
    Block("f32", 2, "a peer", "", "absent: no module").save(tmp_path)
    assert load_blocks(tmp_path)[0].rows[0].ratio == row.ratio
    text = report(load_blocks(tmp_path), ["f32"], [2])
    assert "| tg8@0 | a peer 1 | 4.0 | 2.0 | 2.00 | 1.50 to 2.50 | 1.05 | 5.0 GB/s | 100% |" in text


@pytest.mark.usefixtures("benchmarks")
def test_gains_are_shares_of_the_kernels():
    from scaling import Gain

    # The kernel gains 2, 1.5 and 4 in the same rounds.
    rounds = ((4.0, 3.0, 6.0), (2.0, 2.0, 2.0), (2.0, 3.0, 4.0), (1.0, 2.0, 1.0))
    prompt, step = Gain("pp8", 8, *rounds), Gain("tg8@0", 8, *rounds)
    assert prompt.gains == [2.0, 1.5, 3.0]
    assert prompt.kernel_gains == [2.0, 1.5, 4.0]
    cells = ["2", "4", "2.00", "1.75 to 2.50", "2.00", "1.00"]
    assert list(prompt.cells()) == ["pp8", *cells, "gain 1.85"]
    assert list(step.cells()) == ["tg8@0", *cells, "share 0.9"]
    slow = Gain("pp8", 8, (1.0,), (1.0,), (1.0,), (1.0,))
    assert list(slow.cells())[-1] == "gain 1.85 missed"
    assert list(Gain("tg8@0", 8, (1.0,), (1.0,), (2.0,), (1.0,)).cells())[-2:] == [
        "0.50",
        "share 0.9 missed",
    ]


@pytest.mark.usefixtures("benchmarks")
def test_bytes_of_a_step_are_those_that_are_held():
    import llm_model

    from relax_mlir.llm import load
    from relax_mlir.llm.checkpoints.checkpoint import open_checkpoint

    checkpoint = open_checkpoint("smollm2")
    for weights in ("bf16", "native"):
        steps = [
            llm_model.step_bytes(checkpoint, weights, {"context": m, "generated": 0})
            for m in (0, 100)
        ]
        model = load(weights=weights)
        session = model.session(100)
        assert steps[1] - steps[0] == sum(array.nbytes for array in session._caches.arrays)
        assert math.isclose(steps[0], sum(array.nbytes for array in model.parameters), rel_tol=0.01)
