"""How far quantised arithmetic is from exact arithmetic on the same file: ours and llama.cpp's.

    python benchmarks/quality.py --formats q4_1,q8_0,q4_0,q4_k_m

The exact logits are those of the NumPy forward pass that the tests use, on the file's weights
decoded to float32. README.md says what is compared and how.
"""

import argparse
import hashlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from pydoc_data.topics import topics

import llm_model
import numpy as np

from relax_mlir import cache
from relax_mlir.llm import load
from relax_mlir.llm.checkpoints.checkpoint import Checkpoint, open_checkpoint
from relax_mlir.llm.checkpoints.convert import converted_file
from relax_mlir.llm.checkpoints.packaged import resolve
from relax_mlir.tools.cli import guard

TEXT = topics["types"]  # some pages of English about Python's types, as Python carries them
TOKENS, WINDOW = 2048, 512
STORED = "q4_1"  # the format of the packaged file
# Formats that llama.cpp itself writes: rows that they do not divide get others, as it sees fit.
MIXED = {"q4_k_m": "Q4_K_M", "q5_k_m": "Q5_K_M", "q6_k": "Q6_K"}
PROGRAMS = ("ours, int8", "ours, f32", "llama.cpp")


@dataclass
class Errors:
    """What a program made of the tokens so far: equal likeliest ones, and the divergence's sum."""

    tokens: int = 0
    equal: int = 0
    divergence: float = 0.0
    worst: float = 0.0

    def add(self, expected: np.ndarray, actual: np.ndarray) -> None:
        """Adds the logits of a window: float32[tokens, vocabulary]."""
        for begin in range(0, len(expected), 64):  # the comparison is in float64, which is large
            part = slice(begin, begin + 64)
            lost = llm_model.divergence(expected[part], actual[part])
            self.divergence += float(lost.sum())
            self.worst = max(self.worst, float(lost.max()))
            self.equal += int((expected[part].argmax(-1) == actual[part].argmax(-1)).sum())
        self.tokens += len(expected)


def main() -> int:
    """Runs the command; 1 if ours with its default arithmetic is further off than llama.cpp."""
    options = _options()
    import llama_cpp  # optional

    options.work.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256(TEXT.encode()).hexdigest()[:12]
    print(f"{options.tokens} tokens of Python's help on types (sha256 {digest}...), windows of")
    print(f"{WINDOW}; llama.cpp is llama-cpp-python {llama_cpp.__version__}\n")
    print("| format | program | same likeliest token | mean KL | worst KL |", flush=True)
    print("|---|---|---|---|---|")
    failed = False
    for format in options.formats:
        file = format_file(format, options.work)
        results = compare(file, options.tokens, options.work / f"exact-{file.stem}-{digest}")
        for name, each in results.items():
            share, mean = each.equal / each.tokens, each.divergence / each.tokens
            print(
                f"| {format} | {name} | {share:.2%} | {mean:.2e} | {each.worst:.2e} |", flush=True
            )
        ours, peer = results[PROGRAMS[0]], results[PROGRAMS[2]]
        failed |= ours.divergence > peer.divergence or ours.equal < peer.equal
    return int(failed)


def format_file(format: str, work: Path) -> Path:
    """The packaged model in another format, as a GGUF file."""
    path = resolve("smollm2")
    if format == STORED:
        return path
    if format not in MIXED:
        return converted_file(path, format)
    target = work / f"{path.stem}-{format}.gguf"
    if not target.exists():
        import llama_cpp

        partial = target.with_suffix(".partial")
        options = llama_cpp.llama_model_quantize_default_params()
        options.ftype = getattr(llama_cpp, f"LLAMA_FTYPE_MOSTLY_{MIXED[format]}")
        source = bytes(converted_file(path, "f32"))
        if status := llama_cpp.llama_model_quantize(source, bytes(partial), options):
            raise RuntimeError(f"llama.cpp fails to write {format}: status {status}")
        partial.rename(target)
    return target


def compare(file: Path, count: int, exact: Path) -> dict[str, Errors]:
    """The errors of each program on a file; exact logits are saved in the folder `exact`."""
    checkpoint = open_checkpoint(str(file))
    tokens = np.array(checkpoint.tokenizer.encode(TEXT)[:count])
    wanted = list(_exact_logits(checkpoint, tokens, exact))
    results = {}
    for name in PROGRAMS:
        errors = results[name] = Errors()
        logits = _program(name, file)
        for window, begin in zip(wanted, range(0, count, WINDOW), strict=True):
            errors.add(window, logits(tokens[begin : begin + WINDOW]))
    return results


def _exact_logits(checkpoint: Checkpoint, tokens: np.ndarray, folder: Path) -> Iterator[np.ndarray]:
    folder.mkdir(parents=True, exist_ok=True)
    for begin in range(0, len(tokens), WINDOW):
        path = folder / f"{begin}-{min(begin + WINDOW, len(tokens))}.npy"
        if not path.exists():
            window = tokens[begin : begin + WINDOW]
            logits = llm_model.reference_logits(checkpoint.weights, window)
            partial = path.with_suffix(".partial.npy")
            np.save(partial, logits)
            partial.rename(path)
        yield np.load(path, mmap_mode="r")


def _program(name: str, file: Path) -> Callable[[np.ndarray], np.ndarray]:
    """Makes all logits of a window: float32[tokens, vocabulary]."""
    if name == "llama.cpp":
        from relax_mlir.llm.measurement.peers import LlamaCpp

        model = LlamaCpp(str(file), WINDOW, "native")
        return lambda tokens: model.all_logits(tokens.tolist())
    activations = name.split(", ")[1]
    return load(str(file), weights="native", activations=activations).logits


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    add = parser.add_argument
    known = "any that the gguf package writes (q8_0, q5_0, ...), q4_k_m, q5_k_m, q6_k"
    add("--formats", default="q4_1,q8_0,q4_0,q4_k_m", metavar="NAME,...", help=known)
    add("--tokens", type=int, default=TOKENS, metavar="N", help=f"default: {TOKENS}")
    add("--work", type=Path, metavar="FOLDER", help="keeps files and exact logits (2 GB)")
    options = parser.parse_args()
    options.formats = options.formats.split(",")
    options.work = (options.work or cache.folder() / "bench" / "quality").expanduser()
    return options


if __name__ == "__main__":
    sys.exit(guard("quality.py", main))
