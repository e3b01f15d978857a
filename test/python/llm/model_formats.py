"""Measures every architecture in files of both kinds, in each format, against `transformers`.

    python test/python/llm/model_formats.py [CASE...] [--again]
    python test/python/llm/model_formats.py --write      writes the table in docs/language_models.md

Needs `transformers`, PyTorch and the extra `llm`. Each case is a tiny model of random weights, in
sizes that blocks of 32 divide. `transformers` has, in float32, the values of the rounded
matrices, decoded by the package `gguf`. `Inputs/model_formats.json` has the results: a case that
is in it is measured again only with `--again`, so the command resumes.
"""

import argparse
import json
import sys
import tempfile
import warnings
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

import gguf
import numpy as np
from architecture_cases import (
    CASES,
    INPUTS,
    TOKENS,
    UNSTATED,
    WITH_STATES,
    in_blocks,
    write,
)
from safetensors.numpy import save_file
from test_batch import ragged_difference

from relax_mlir.codegen import translating
from relax_mlir.llm import load
from relax_mlir.llm.architectures.registry import ARCHITECTURES
from relax_mlir.llm.checkpoints.checkpoint import open_checkpoint
from relax_mlir.llm.checkpoints.convert import convert
from relax_mlir.llm.checkpoints.weights import WeightSource
from relax_mlir.llm.formats.encoding import to_blocks
from relax_mlir.llm.formats.quantization import RawTensor

RESULTS = INPUTS / "model_formats.json"
PAGE = Path(__file__).parents[3] / "docs" / "language_models.md"
BEGIN, END = "<!-- formats of architectures -->\n", "<!-- end -->\n"
FORMATS = {"f32": "f32", "bf16": "bf16", "q8_0": "8 bits", "q4_1": "4 bits"}
NEW_TOKENS = 64
SIZES = {"max_position_embeddings": 128, "n_positions": 128}
NO_WINDOWS = {"sliding_window": 128}
"""For files that cannot state windows: all of the context."""
CHANGES_IN_A_SEQUENCE = ("phi3-longrope-long",)
"""Their early tokens are rotated by other factors, if they are computed one by one."""
RECOMPUTED = ("bamba",)
"""Types of models of which `transformers` itself has other logits with its cache than without."""

Row = dict[str, list[float]]
"""The difference of logits as a share of their spread, and the greedy tokens that are equal."""


def cases() -> list[str]:
    """The cases of the table."""
    return [name for name in CASES if name not in CHANGES_IN_A_SEQUENCE]


def measure(folder: Path, name: str) -> Row:
    """All that is in the row of a case."""
    row: Row = {}
    sizes = {**in_blocks(name), **SIZES}
    model = write(folder / "folder", name, sizes)
    for format in FORMATS if not name.endswith("-gguf") else ():
        values = {
            n: _rounded(open_checkpoint(str(model)).weights, n, format) for n in _names(model)
        }
        reference = write_values(folder / f"folder-{format}", model, values)
        row[f"folder {format}"] = _compare(reference, str(model), format)
    if not name.endswith("-gguf") and name not in WITH_STATES:
        row["batch"] = [ragged_difference(model, "f32")]
    if UNSTATED.get(name, "max_context") == "max_context":
        stated = {**sizes, **NO_WINDOWS} if name in UNSTATED else sizes
        model = write(folder / "stated", name, stated)
        for format in FORMATS:
            file = folder / f"{format}.gguf"
            convert(str(model), file, format)
            source = open_checkpoint(str(file)).weights
            values = {n: _decoded(source.raw(n)) for n in source.names}
            reference = write_values(folder / f"gguf-{format}", model, values)
            row[f"GGUF {format}"] = _compare(reference, str(file), "native")
    return row


def _names(model: Path) -> tuple[str, ...]:
    return open_checkpoint(str(model)).weights.names


def _decoded(raw: RawTensor) -> np.ndarray:
    """The values of a stored tensor, by the package `gguf`."""
    if raw.format == "F32":
        return np.array(raw.data)
    data = np.ascontiguousarray(raw.data).view(np.uint8).reshape(len(raw.data), -1)
    return gguf.dequantize(data, gguf.GGMLQuantizationType[raw.format]).reshape(raw.shape)


def _rounded(source: WeightSource, name: str, format: str) -> np.ndarray:
    """A weight of a folder, as `--weights` rounds it."""
    values = source.load_f32(name)
    if values.ndim != 2 or format == "f32":
        return values
    if format == "bf16":
        import torch

        return torch.tensor(values).bfloat16().float().numpy()
    return _decoded(to_blocks(RawTensor("F32", values.shape, values), format.upper()))


def write_values(folder: Path, model: Path, values: Mapping[str, np.ndarray]) -> Path:
    """The model of another folder with these weights."""
    source = open_checkpoint(str(model)).weights
    folder.mkdir()
    for path in model.glob("*.json"):
        (folder / path.name).write_bytes(path.read_bytes())
    stored = {}
    for tensor in source.architecture.hf_tensors(source.config):
        rows = np.concatenate([values[part] for part in tensor.parts]) - np.float32(tensor.plus)
        if tensor.order is not None:
            rows[tensor.order] = rows.copy()
        rows = rows.T if tensor.transposed else rows
        shape = tensor.shape(source.config.weight_shapes())
        stored[tensor.name] = np.ascontiguousarray(rows.reshape(shape), np.float32)
    save_file(stored, folder / "model.safetensors", {"format": "pt"})
    return folder


def _compare(reference: Path, model: str, weights: str) -> list[float]:
    """How far the logits of a prompt are apart, and how many greedy tokens are equal."""
    import torch
    import transformers

    theirs = transformers.AutoModelForCausalLM.from_pretrained(
        reference, dtype=torch.float32, attn_implementation="eager"
    )
    ids = torch.tensor(TOKENS)[None]
    with torch.no_grad():
        wanted = theirs(ids).logits[0].numpy()
        text = theirs.generate(
            ids,
            do_sample=False,
            max_new_tokens=NEW_TOKENS,
            eos_token_id=None,
            pad_token_id=0,
            use_cache=theirs.config.model_type not in RECOMPUTED,
        )[0].tolist()
    ours = load(model, weights=weights, activations="f32")
    difference = float(np.abs(ours.logits(TOKENS) - wanted).max() / np.ptp(wanted))
    session, logits, equal = ours.session(), None, 0
    logits = session.append(TOKENS)
    for token in text[len(TOKENS) :]:
        if int(logits[0].argmax()) != token:
            break
        equal += 1
        logits = session.append([token])
    return [difference, equal]


def table(results: Mapping[str, Row]) -> str:
    """The table of the page: a row per measured architecture, of the worst of its cases."""
    columns = [f"{kind} {format}" for kind in ("folder", "GGUF") for format in FORMATS]
    heads = [f"{kind}, {text}" for kind in ("folder", "GGUF") for text in FORMATS.values()]
    lines = [
        f"| architecture | {' | '.join(heads)} | equal tokens | batch of 7 |",
        f"|---|{'---|' * (len(columns) + 2)}",
    ]
    rows: dict[str, list[Row]] = defaultdict(list)
    for name, row in results.items():
        rows[CASES[name]["architectures"][0]].append(row)
    for architecture in ARCHITECTURES:
        found = rows[architecture.hugging_face[0]]
        if not found:
            continue
        cells = [_worst(row[c][0] for row in found if c in row) for c in columns]
        equal = [row[c][1] for row in found for c in columns if c in row]
        tokens = f"{int(min(equal))} of {NEW_TOKENS}"
        batch = _worst(row["batch"][0] for row in found if "batch" in row)
        name = architecture.hugging_face[0].partition("For")[0].removesuffix("LMHeadModel")
        lines.append(f"| {name} | {' | '.join(cells)} | {tokens} | {batch} |")
    return "\n".join(lines) + "\n"


def _worst(values: Iterable[float]) -> str:
    found = list(values)
    return f"{max(found):.0e}".replace("e-0", "e-") if found else "-"


def results() -> dict[str, Row]:
    """What was measured, by case."""
    return dict(json.loads(RESULTS.read_text())) if RESULTS.exists() else {}


def main() -> None:
    """Measures cases, or writes the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in arguments.cases or cases():
        if name in results() and not arguments.again:
            continue
        with tempfile.TemporaryDirectory() as folder, translating():
            row = measure(Path(folder), name)
        print(name, row, flush=True)
        found = {**results(), name: row}
        RESULTS.write_text(json.dumps({n: found[n] for n in CASES if n in found}, indent=1) + "\n")
    if arguments.write:
        text = PAGE.read_text()
        head, rest = text.split(BEGIN)
        PAGE.write_text(head + BEGIN + table(results()) + END + rest.split(END)[1])


if __name__ == "__main__":
    sys.exit(main())
