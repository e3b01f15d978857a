"""Layers with states: chunks of prompts against steps, and what sessions do with states."""

import json

import numpy as np
import pytest
from architecture_cases import CASES, TOKENS, expected, write

from relax_mlir.errors import ModelError, UsageError
from relax_mlir.executable import BoundCall
from relax_mlir.llm import load
from relax_mlir.llm.architectures.registry import of_folder
from relax_mlir.llm.batching.engine import Engine
from relax_mlir.llm.decoder import caches
from relax_mlir.llm.generation import session as sessions
from relax_mlir.llm.modules.decoder import Transformer, export
from relax_mlir.tools.relax_llm import main

TOLERANCE = 1e-5
"""Of the spread, as the largest difference."""
LONG = np.random.default_rng(11).integers(0, 271, 63)


def difference(logits: np.ndarray, wanted: np.ndarray) -> float:
    return float(np.abs(logits - wanted).max() / np.ptp(wanted))


@pytest.fixture(scope="module", params=["mamba2", "bamba"])
def model(request, tmp_path_factory):
    return load(str(write(tmp_path_factory.mktemp("model"), request.param)), weights="f32")


def test_chunks_are_steps(model, monkeypatch):
    stepped = model.session()
    wanted = np.concatenate([stepped.append([int(token)]).copy() for token in LONG])
    for most in (64, 63, 62, 17, 2):
        monkeypatch.setattr(sessions, "STATE_TOKENS", most)
        assert difference(model.session().append(LONG, rows=len(LONG)), wanted) < TOLERANCE
        assert difference(model.session().append(LONG, rows=5), wanted[-5:]) < TOLERANCE
        assert difference(model.session().append(LONG), wanted[-1:]) < TOLERANCE


def test_truncated_sessions(model):
    session = model.session()
    session.append(TOKENS)
    for length in (len(TOKENS), 7, 0):
        session.truncate(length)
        assert session.length == length
        wanted = model.logits([*TOKENS[:length], 5, 6])[-1:]
        assert difference(session.append([5, 6]), wanted) < TOLERANCE
        session.truncate(length)
    with pytest.raises(UsageError, match="length is 1; the session has 0 tokens"):
        session.truncate(1)


def test_calls_that_do_not_end(model, monkeypatch):
    """They have changed states, which are computed again before anything needs them."""
    session, run, logits = model.session(), BoundCall.run, sessions.Session._run
    session.append(TOKENS[:7])

    def interrupted(call):
        run(call)
        raise KeyboardInterrupt

    def interrupted_later(session, call):
        logits(session, call)
        raise KeyboardInterrupt

    for tokens, patched in (
        ([5], (BoundCall, "run", interrupted)),
        ([5, 6], (BoundCall, "run", interrupted)),
        ([3], (sessions.Session, "_run", interrupted_later)),
        ([3, 4], (sessions.Session, "_run", interrupted_later)),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(*patched)
            with pytest.raises(KeyboardInterrupt):
                session.append(tokens)
        assert session.tokens == tuple(TOKENS[:7])
    fork = session.fork()
    wanted = model.logits([*TOKENS[:7], 5, 6])[-1:]
    assert difference(fork.append([5, 6]), wanted) < TOLERANCE
    assert difference(session.append([5, 6]), wanted) < TOLERANCE


def test_forked_sessions(model):
    session = model.session()
    session.append(TOKENS)
    fork = session.fork()
    first = session.append([3, 4]).copy()
    assert difference(fork.append([3, 4]), first) == 0
    assert fork.tokens == session.tokens


def test_caches_that_grow(model, monkeypatch):
    """States stay as caches of tokens grow."""
    monkeypatch.setattr(caches, "FIRST_ROOM", 2)
    session = model.session()
    parts = [
        session.append(TOKENS[i : i + 3], rows=len(TOKENS[i : i + 3])) for i in range(0, 23, 3)
    ]
    assert difference(np.concatenate(parts), model.logits(TOKENS)) < TOLERANCE


def test_generation(model):
    """Guesses that are rejected leave no trace in the states."""
    from relax_mlir.llm.generation.drafts import PromptLookup

    plain = model.generate("hello hello hello", max_tokens=24, raw=True)
    text = "".join(plain)
    guessed = model.generate("hello hello hello", max_tokens=24, raw=True, draft=PromptLookup())
    assert "".join(guessed) == text
    assert guessed.tokens == plain.tokens


def test_states_have_no_capacity(tmp_path):
    text = export(Transformer(of_folder(write(tmp_path, "mamba2"))[1]))
    assert '"c"' not in text
    assert text.count('graph.name = "state_cache_') == 3
    assert "tensor<6x16x10xf32>" in text
    text = export(Transformer(of_folder(write(tmp_path, "bamba"))[1]))
    assert text.count('graph.name = "state_cache_') == 2
    assert text.count('graph.name = "key_cache_') == 1


def test_batches_are_refused(tmp_path):
    folder = write(tmp_path, "mamba2")
    with pytest.raises(ModelError, match="has layers with states; batches take attention alone"):
        Engine.load(str(folder), weights="f32")


def test_browsers_are_refused(tmp_path, capsys):
    folder = write(tmp_path / "model", "mamba2")
    assert main(["export-web", str(folder), "-o", str(tmp_path / "site")]) == 1
    assert "has layers with states; browsers take attention alone" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("case", "changes", "message"),
    [
        ("mamba2", {"num_heads": 4}, "has 4 heads of 16 elements; expects 'expand' times 48"),
        ("mamba2", {"n_groups": 4}, "has 6 heads of states in 4 groups; expects a multiple"),
        ("mamba2", {"conv_kernel": 1}, "convolves 1 token; expects two or more"),
        ("mamba2", {"hidden_act": "gelu"}, "'hidden_act' is 'gelu'; 'silu' is supported"),
        ("mamba2", {"time_step_limit": [0.1]}, "'time_step_limit' is .* expects two values"),
        ("mamba2", {"time_step_limit": [-1, 2]}, "'time_step_limit' is .* expects two values"),
        ("bamba", {"attn_layer_indices": [3]}, "'attn_layer_indices' has 3; expects 0 to 2"),
        ("bamba", {"mamba_d_head": 7}, "has 8 heads of states of 7 elements; expects 96 in all"),
    ],
)
def test_refusals(tmp_path, case, changes, message):
    path = write(tmp_path, case) / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    with pytest.raises(ModelError, match=message):
        of_folder(tmp_path)


def test_cases_have_references():
    assert {"mamba2", "bamba"} <= expected().keys() & CASES.keys()
