"""Decoders kept on disk: a later start gives the same numbers without the compiler."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tiny_models import random_weights, write_gguf, write_hf

from relax_mlir import cache
from relax_mlir.llm import load
from relax_mlir.llm.decoder import building
from relax_mlir.llm.decoder.arrays import ALIGNMENT, aligned_arrays, as_bytes, total_bytes, views_of

TOKENS = [5, 6, 7, 8]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Iterator[Path]:
    """A cache for these tests."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("cache")
        patch.setenv("RELAX_CACHE_DIR", str(folder))
        yield folder


@pytest.fixture
def model(tmp_path) -> str:
    return str(write_hf(tmp_path / "tiny", random_weights()))


def kept(folder: Path) -> set[Path]:
    return set(folder.glob("*/*.weights"))


def refuse(*_: object) -> None:
    raise AssertionError("built again")


@pytest.mark.parametrize("opt_level", [0, 3])
def test_a_later_start_builds_nothing(folder, model, opt_level, monkeypatch):
    first = load(model, opt_level=opt_level)
    monkeypatch.setattr(building, "build", refuse)
    second = load(model, opt_level=opt_level)
    np.testing.assert_array_equal(second.logits(TOKENS), first.logits(TOKENS))
    for a, b in zip(first.parameters, second.parameters, strict=True):
        np.testing.assert_array_equal(a, b)
        assert b.ctypes.data % ALIGNMENT == 0


@pytest.mark.parametrize("settings", [{"weights": "native"}, {"weights": "native", "opt_level": 1}])
def test_quantised_weights_are_kept_too(folder, tmp_path, settings, monkeypatch):
    model = str(write_gguf(tmp_path / "tiny.gguf", random_weights(), "Q8_0"))
    first = load(model, **settings)
    monkeypatch.setattr(building, "build", refuse)
    np.testing.assert_array_equal(load(model, **settings).logits(TOKENS), first.logits(TOKENS))


def test_a_later_process_imports_no_compiler(folder, model):
    program = (
        "import sys; from relax_mlir.llm import load; load(sys.argv[1]).logits([1, 2]);"
        "print(sum(name in sys.modules for name in ('torch_mlir', 'llvmlite')))"
    )
    command = [sys.executable, "-c", program, model]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    loaded = [
        subprocess.run(command, check=True, env=environment, capture_output=True).stdout.strip()
        for _ in range(2)
    ]
    assert loaded == [b"2", b"0"]


def test_other_settings_and_other_files_are_other_decoders(folder, model, tmp_path):
    before = kept(folder)
    load(model)
    load(model, opt_level=2)
    write_hf(tmp_path / "tiny", random_weights(seed=1))
    changed = load(model)
    assert len(kept(folder) - before) == 3
    other = load(str(write_hf(tmp_path / "other", random_weights(seed=1))), use_cache=False)
    np.testing.assert_array_equal(changed.logits(TOKENS), other.logits(TOKENS))
    assert len(kept(folder) - before) == 3


@pytest.mark.parametrize(
    ("name", "value"), [("RELAX_CACHE_WEIGHTS", "0"), ("RELAX_CACHE_BYTES", "500000")]
)
def test_weights_can_be_left_out(folder, model, name, value, monkeypatch):
    before = kept(folder)
    monkeypatch.setenv(name, value)
    load(model)
    assert kept(folder) <= before


def test_weights_take_half_of_the_cache_at_most(tmp_path, monkeypatch):
    monkeypatch.setenv("RELAX_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "FRESH_SECONDS", 0)
    for seed in range(3):
        load(str(write_hf(tmp_path / str(seed), random_weights(seed=seed))))
        found = kept(tmp_path / "cache")
        if not seed:
            size = sum(path.stat().st_size for path in found)
            monkeypatch.setenv("RELAX_CACHE_BYTES", str(5 * size))
    assert len(found) == 2


def test_a_file_of_another_size_is_not_used(folder, model):
    before = kept(folder)
    logits = load(model).logits(TOKENS)
    (path,) = kept(folder) - before
    path.write_bytes(path.read_bytes()[:-64])
    np.testing.assert_array_equal(load(model).logits(TOKENS), logits)


def test_arrays_survive_as_bytes():
    kinds = [((3, 5), np.dtype(np.float32)), ((0,), np.dtype(np.int8)), ((7,), np.dtype(np.int8))]
    kinds.append(((2, 2, 2), np.dtype(np.uint16)))
    arrays = aligned_arrays(kinds)
    for number, array in enumerate(arrays):
        array[...] = np.arange(array.size).reshape(array.shape) + number
        assert array.ctypes.data % ALIGNMENT == 0
    data = b"".join(as_bytes(arrays))
    assert len(data) == total_bytes(kinds)
    for array, again in zip(arrays, views_of(np.frombuffer(data, np.uint8), kinds), strict=True):
        np.testing.assert_array_equal(array, again)
