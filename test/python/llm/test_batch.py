"""Steps over ragged batches against each sequence alone, of every architecture."""

import numpy as np
import pytest
from architecture_cases import CASES, TOKENS, WITH_STATES, write

from relax_mlir.errors import UsageError
from relax_mlir.llm import load
from relax_mlir.llm.batching.batch import Batch, Run
from relax_mlir.llm.checkpoints.checkpoint import open_checkpoint
from relax_mlir.llm.checkpoints.convert import convert
from relax_mlir.llm.decoder.decoder import Settings, decoder_for

LENGTHS = (1, 2, 5, 11, 16, 17, 19)
TOLERANCE = {"f32": 1e-5, "bf16": 3e-2, "int8": 1e-2}
"""Of the logits' spread, as the largest difference."""


def _batch(folder, cache: str = "f32", activations: str = "f32") -> Batch:
    checkpoint = open_checkpoint(str(folder))
    settings = Settings("f32", activations, cache=cache, batched=True)
    decoder = decoder_for(checkpoint, settings, 2)
    return Batch(decoder.executable["main"], checkpoint.config, decoder.parameters, 20)


def ragged_difference(folder, cache: str = "f32") -> float:
    """The largest difference from sessions, as a share of the spread.

    Prompts are in chunks, of all sequences at a time, at shuffled pages.
    """
    alone, batch = load(str(folder), weights="f32", cache=cache), _batch(folder, cache)
    random = np.random.default_rng(len(LENGTHS))
    prompts = [random.permutation(TOKENS)[:length].tolist() for length in LENGTHS]
    pages = random.permutation(20).tolist()
    tables = [[pages.pop(), pages.pop()] for _ in prompts]
    sessions = [alone.session() for _ in prompts]
    done, worst = [0] * len(prompts), 0.0
    while any(at < len(prompt) for at, prompt in zip(done, prompts)):
        chosen = [i for i, prompt in enumerate(prompts) if done[i] < len(prompt)]
        runs, wanted = [], []
        for i in chosen:
            new = prompts[i][done[i] : done[i] + int(random.integers(1, 8))]
            runs.append(Run(new, done[i], tables[i], len(new)))
            wanted.append(sessions[i].append(new, rows=len(new)).copy())
            done[i] += len(new)
        expected = np.concatenate(wanted)
        difference = np.abs(batch.step(runs) - expected).max() / np.ptp(expected)
        worst = max(worst, float(difference))
    return worst


@pytest.mark.rotate(12)
@pytest.mark.parametrize("name", sorted(CASES.keys() - WITH_STATES))
def test_ragged_batches(tmp_path, name) -> None:
    assert ragged_difference(write(tmp_path, name)) < TOLERANCE["f32"]


@pytest.mark.parametrize("name", ["llama"])
@pytest.mark.parametrize("cache", ["f32", "bf16"])
def test_caches(tmp_path, name, cache) -> None:
    assert ragged_difference(write(tmp_path, name), cache) < TOLERANCE[cache]


@pytest.mark.parametrize("cache", ["f32", "bf16"])
def test_what_pages_had_before_has_no_part(tmp_path, cache) -> None:
    """Pages may have what others left behind the end of a sequence, NaN too."""
    batch, found = _batch(write(tmp_path, "llama"), cache), []
    tokens = np.random.default_rng().integers(0, 271, max(LENGTHS)).tolist()
    for value in (0, np.nan):
        for pages in batch._caches:
            pages[...] = value if pages.dtype == np.float32 else 0x7FC0 * (value != 0)
        for first in (0, 1):  # prompts, then one more token each
            runs = [
                Run(tokens[:n] if not first else [7], first * n, [2 * i, 2 * i + 1], 1)
                for i, n in enumerate(LENGTHS)
            ]
            found.append(batch.step(runs).copy())
    assert np.array_equal(found[0], found[2])
    assert np.array_equal(found[1], found[3])


@pytest.mark.rotate(8)
@pytest.mark.parametrize("format", ["q8_0", "q4_0", "q4_1", "q5_0", "q5_1", "q4_k", "q5_k", "q6_k"])
def test_same_bits(tmp_path, format) -> None:
    """With activations of 8 bits, logits are those of each prompt alone, at any lengths of chunks.

    A difference of one bit would be one of a hundredth of the spread, once a value is rounded.
    """
    file = tmp_path / "model.gguf"
    sizes = {"hidden_size": 256, "intermediate_size": 512, "num_attention_heads": 4}
    sizes |= {"head_dim": 64, "num_hidden_layers": 2, "max_position_embeddings": 300}
    convert(str(write(tmp_path / "folder", "llama", sizes)), file, format)
    checkpoint = open_checkpoint(str(file))
    assert checkpoint.weights.format("model.layers.0.mlp.down_proj.weight") == format.upper()
    decoder = decoder_for(checkpoint, Settings(cache="bf16", batched=True), 2)
    batch = Batch(decoder.executable["main"], checkpoint.config, decoder.parameters, 80)
    alone, random = load(str(file)), np.random.default_rng()
    assert alone.executable["main"].arguments[2].dtype == "bf16"
    lengths = (1, 2, 17, 40, 192, 290)
    prompts = [random.integers(0, 271, length).tolist() for length in lengths]
    pages = np.array_split(random.permutation(80), [1, 2, 4, 7, 19, 38])
    sessions, done = [alone.session() for _ in prompts], [0] * len(prompts)
    # The longest prompt alone is read token by token: longer ones are computed in blocks.
    expected = [s.append(p, rows=len(p)).copy() for s, p in zip(sessions[:-1], prompts)]
    expected.append(np.concatenate([sessions[-1].append([i]).copy() for i in prompts[-1]]))
    while any(at < len(prompt) for at, prompt in zip(done, prompts)):
        runs, wanted = [], []
        for i, prompt in enumerate(prompts):
            if new := prompt[done[i] : done[i] + int(random.integers(1, 65))]:
                runs.append(Run(new, done[i], pages[i].tolist(), len(new)))
                wanted.append(expected[i][done[i] : done[i] + len(new)])
                done[i] += len(new)
        np.testing.assert_array_equal(batch.step(runs), np.concatenate(wanted))


def test_wrong_runs_are_refused(tmp_path) -> None:
    batch = _batch(write(tmp_path, "llama"))
    for run, message in (
        (Run([], 0, [0]), "rows of tokens"),
        (Run([1], 0, [20]), "page 20 is not one of 20"),
        (Run([1], 16, [0]), "do not fit in 1 pages"),
        (Run([10**6], 0, [0]), "not in the vocabulary"),
        (Run([1] * 17, 0, [3, 3]), "written twice"),
    ):
        with pytest.raises(UsageError, match=message):
            batch.step([run])
    with pytest.raises(UsageError, match="written twice"):
        batch.step([Run([1], 0, [2]), Run([2], 0, [2])])
    with pytest.raises(UsageError, match="no runs"):
        batch.step([])
