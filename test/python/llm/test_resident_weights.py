"""Weights are held once, in about as many bytes as their format has, also while they are loaded."""

from dataclasses import replace
from io import BytesIO
from math import prod
from pathlib import Path

import pytest
from tiny_models import CONFIG, random_weights, write_gguf

from relax_mlir.llm import load
from relax_mlir.llm.checkpoints.checkpoint import open_checkpoint
from relax_mlir.llm.decoder.arrays import total_bytes
from relax_mlir.llm.decoder.building import compile_decoder
from relax_mlir.llm.decoder.decoder import Settings, parameter_kinds
from relax_mlir.llm.decoder.parameters import File, Memory, load_parameters

pytestmark = pytest.mark.usefixtures("llvm_turns")

BYTES = {"f32": 4, "bf16": 2, "q8_0": 34 / 32, "q4_0": 18 / 32, "q4_1": 20 / 32}
TIED = replace(CONFIG, vocab_size=1000, hidden_size=128, num_heads=8, tie_embeddings=True)
LARGE = replace(CONFIG, num_layers=6, hidden_size=384, intermediate_size=1536, num_heads=24)


@pytest.fixture(scope="module")
def cache(tmp_path_factory) -> str:
    """A cache that is empty at first, of kernels that most weights share."""
    return str(tmp_path_factory.mktemp("cache"))


@pytest.mark.rotate(5)
@pytest.mark.parametrize("weights", BYTES)
@pytest.mark.parametrize("use_cache", [True, False])
def test_a_tied_table_is_held_once(weights, use_cache, cache, tmp_path, monkeypatch):
    monkeypatch.setenv("RELAX_CACHE_DIR", cache)
    model = str(write_gguf(tmp_path / "m.gguf", random_weights(TIED), config=TIED))
    shapes = TIED.weight_shapes().values()
    least = sum(prod(shape) * (BYTES[weights] if len(shape) > 1 else 4) for shape in shapes)
    for _ in range(1 + use_cache):  # as it is made, and as it is found
        held = load(model, weights, use_cache=use_cache).parameters
        assert least <= sum(array.nbytes for array in held) <= 1.1 * least


def peak_growth(work) -> int:
    """By how many bytes the memory of this process grows at most while `work` runs."""
    Path("/proc/self/clear_refs").write_text("5")  # forgets the peak so far
    before = _status("VmRSS")
    work()
    return _status("VmHWM") - before


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(name + ":"))


class Discarded(BytesIO):
    """A file that keeps the number of its bytes only."""

    count = 0

    def writelines(self, parts) -> None:
        """Counts."""
        self.count += sum(map(len, parts))


@pytest.mark.rotate(3)
@pytest.mark.parametrize("weights", ["f32", "bf16", "q8_0"])
def test_weights_are_laid_out_one_after_the_other(weights, tmp_path):
    path = write_gguf(tmp_path / "m.gguf", random_weights(LARGE), config=LARGE)
    checkpoint = open_checkpoint(str(path))
    executable, parameters = compile_decoder(checkpoint, Settings(weights))
    kinds = parameter_kinds(executable)
    total = total_bytes(kinds)
    file, memory = Discarded(), []

    def load_to(sink) -> None:
        load_parameters(checkpoint.weights, parameters, executable, sink, threads=2)

    one = max(total // 2, 20 << 20)  # two forms of a weight, its part of the file, and rounding
    growth = peak_growth(lambda: load_to(File(file, kinds)))
    assert file.count == total
    assert growth <= one
    growth = peak_growth(lambda: (memory.append(Memory(kinds)), load_to(memory[0])))
    assert growth <= total + one
