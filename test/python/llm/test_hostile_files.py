"""Whatever a model's files hold: they open, or one error of one line names the file."""

import json
import os
import random
import struct
import time
from pathlib import Path

import hostile_files
import pytest
from architecture_cases import CASES, UNSTATED, write
from gguf.constants import GGMLQuantizationType
from tiny_models import random_weights, write_gguf, write_hf

from relax_mlir.errors import ModelError
from relax_mlir.llm.checkpoints.checkpoint import open_checkpoint
from relax_mlir.llm.checkpoints.convert import convert
from relax_mlir.llm.checkpoints.hf_reader import HuggingFaceWeights
from relax_mlir.llm.formats.gguf_file import MAX_METADATA_BYTES, GgufFile

SECONDS = 5.0
TEXT = "hello w<|im_end|>\u00e9\ud7ff 12"


def opens(path: Path, damaged: Path) -> bool:
    """Opens and uses a model; whether it is taken. It is refused in time, by one line."""
    begin = time.monotonic()
    try:
        checkpoint = open_checkpoint(str(path))
        for name in checkpoint.weights.names[:3]:
            checkpoint.weights.load_f32(name)
        checkpoint.tokenizer.decode(checkpoint.tokenizer.encode(TEXT))
    except ModelError as error:
        message = str(error)
        assert str(path) in message, message
        assert damaged.name in message or path.is_dir(), message
        assert message.isprintable(), message[:300]
        assert len(message) < 1000, message[:300]
        return False
    finally:
        assert time.monotonic() - begin < SECONDS
    return True


def check_gguf(folder: Path, count: int, seed: int) -> None:
    path = write_gguf(folder / "m.gguf", random_weights())
    data = path.read_bytes()
    fields = hostile_files.gguf_fields(data)
    # Those of the vocabulary are most, and all alike.
    fields = [*fields[:12], *fields[-200:], *random.Random(0).sample(fields, min(300, len(fields)))]
    generator = random.Random(seed)
    results = []
    for _ in range(count):
        path.write_bytes(hostile_files.mutated_bytes(data, generator, fields))
        results.append(opens(path, path))
    assert {*results} == {True, False}


def check_json(folder: Path, file: str, count: int, seed: int) -> None:
    path = write_hf(folder / "m", random_weights()) / file
    text = path.read_text()
    generator = random.Random(seed)
    results = []
    for _ in range(count):
        path.write_text(hostile_files.mutated_json(text, generator))
        results.append(opens(path.parent, path))
    assert {*results} == {True, False}


def check_safetensors(folder: Path, count: int, seed: int) -> None:
    path = write_hf(folder / "m", random_weights()) / "model.safetensors"
    table, rest = hostile_files.safetensors_parts(path.read_bytes())
    generator = random.Random(seed)
    results = []
    for _ in range(count):
        path.write_bytes(
            hostile_files.safetensors(hostile_files.mutated_json(table, generator), rest)
        )
        results.append(opens(path.parent, path))
    assert False in results


@pytest.mark.rotate(6)
@pytest.mark.parametrize("name", CASES)
def test_mutated_files_of_architectures(tmp_path: Path, name: str) -> None:
    folder, generator = write(tmp_path / "m", name), random.Random(name)
    config, file = folder / "config.json", tmp_path / "m.gguf"
    if UNSTATED.get(name, "max_context") == "max_context":
        convert(str(folder), file, "q8_0")
        data = file.read_bytes()
        fields = hostile_files.gguf_fields(data)
        fields = [*fields[:100], *fields[-100:]]
        for _ in range(12):
            file.write_bytes(hostile_files.mutated_bytes(data, generator, fields))
            opens(file, file)
    text = config.read_text()
    for _ in range(20):
        config.write_text(hostile_files.mutated_entries(text, generator))
        opens(folder, config)


@pytest.mark.parametrize(
    ("name", "key", "message"),
    [
        ("deepseek2", "kv_lora_rank", r"has matrices of \d+ rows in attention"),
        ("deepseek3", "v_head_dim", r"has matrices of \d+ rows in attention"),
        ("deepseek3", "first_k_dense_replace", "has no weight 'model.layers.1.mlp.gate_proj"),
        ("phi3", "num_hidden_layers", "has 2147483647 layers; expects at most"),
        ("mamba2", "num_hidden_layers", "has 2147483647 layers; expects at most"),
    ],
)
def test_sizes_take_no_memory(tmp_path: Path, name: str, key: str, message: str) -> None:
    folder = write(tmp_path, name)
    config = folder / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), key: 2**31 - 1}))
    with pytest.raises(ModelError, match=message):
        open_checkpoint(str(folder))


def test_half_of_a_surrogate_pair(tmp_path: Path) -> None:
    folder = write_hf(tmp_path, random_weights())
    (folder / "tokenizer_config.json").write_text(r'{"eos_token": "\ud800"}')
    with pytest.raises(ModelError, match=r"tokenizer_config\.json: cannot be read: .*surrogates"):
        open_checkpoint(str(folder))


FILES = ["config.json", "tokenizer.json", "tokenizer_config.json"]


def test_mutated_gguf_files(tmp_path: Path) -> None:
    check_gguf(tmp_path, 60, seed=1)


@pytest.mark.parametrize("file", FILES)
def test_mutated_json_files(tmp_path: Path, file: str) -> None:
    check_json(tmp_path, file, 40, seed=1)


def test_mutated_safetensors(tmp_path: Path) -> None:
    check_safetensors(tmp_path, 60, seed=1)


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(2, 12))
def test_many_mutated_files(tmp_path: Path, seed: int) -> None:
    check_gguf(tmp_path, 1500, seed)
    for file in FILES:
        check_json(tmp_path / file, file, 1000, seed)
    check_safetensors(tmp_path / "tensors", 1000, seed)


def be_a_pipe(path: Path) -> None:
    os.mkfifo(path)


def be_a_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


KINDS = {"a pipe": be_a_pipe, "a folder": Path.mkdir, "a device": be_a_device}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("file", ["m.gguf", "model.safetensors", *FILES])
def test_what_is_no_regular_file_is_not_waited_for(tmp_path: Path, kind: str, file: str) -> None:
    if file == "m.gguf" and kind == "a folder":
        return
    path = tmp_path / file
    if file != "m.gguf":
        path = write_hf(tmp_path / "m", random_weights()) / file
        path.unlink()
    KINDS[kind](path)
    model = path if file == "m.gguf" else path.parent
    with pytest.raises(ModelError, match=rf"{file}: cannot be read: it is {kind}; expects a reg"):
        open_checkpoint(str(model))


def test_declared_sizes_take_no_memory(tmp_path: Path) -> None:
    """A file of a terabyte, none of which is on the disk."""
    path = tmp_path / "m.gguf"
    header = b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 1) + b"k"
    with path.open("wb") as file:
        file.write(header + struct.pack("<IIQ", 9, 0, 2**39))
        file.truncate(1 << 40)
    with pytest.raises(ModelError, match=rf"'k' ends at byte .*may take {MAX_METADATA_BYTES} byte"):
        GgufFile.open(path)
    path = write_hf(tmp_path / "m", random_weights()) / "model.safetensors"
    with path.open("wb") as file:
        file.write(struct.pack("<Q", 2**39))
        file.truncate(1 << 40)
    with pytest.raises(ModelError, match="has a tensor table of 549755813888 bytes; at most"):
        HuggingFaceWeights(path.parent)


def test_keys_and_dims_of_gguf_files(tmp_path: Path) -> None:
    def entry(name: bytes) -> bytes:
        return struct.pack("<Q", len(name)) + name

    path = tmp_path / "m.gguf"
    path.write_bytes(
        b"GGUF" + struct.pack("<IQQ", 3, 0, 2) + 2 * (entry(b"k\n") + struct.pack("<IB", 0, 1))
    )
    with pytest.raises(ModelError, match=r"has the key 'k\\n' twice"):
        GgufFile.open(path)
    tensor = entry(b"t") + struct.pack("<IIQ", 0, GGMLQuantizationType.Q8_0, 0)
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + tensor + bytes(64))
    with pytest.raises(ModelError, match="'t' has rows of 1, no multiple of Q8_0's 32"):
        GgufFile.open(path)
    for dims in [(0, 2**63), (2**32, 2**32), (2**31, 1)]:
        tensor = entry(b"t") + struct.pack("<IQQIQ", 2, *dims, 0, 0)
        path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + tensor + bytes(64))
        with pytest.raises(ModelError, match=r"'t' has shape \(\d+, \d+\); dims of 1 to"):
            GgufFile.open(path)
