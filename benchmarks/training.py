"""Steps of training of a small transformer, compared with PyTorch: gradients, and milliseconds.

    python benchmarks/training.py --threads 1 --peers-python PYTHON

Each step is the loss, gradients and AdamW of one batch. README.md says what is compared and how.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from training_case import Transformer, sizes

import relax_mlir
from relax_mlir.training import Trainer, with_gradient

PEER = Path(__file__).parent / "peers" / "training_torch.py"
KINDS = ("eager", "compiled")


def peer(
    python: str, model: Transformer, batch: tuple[int, int], threads: int, steps: int, kind: str
) -> dict[str, np.ndarray] | None:
    """What PyTorch computes, and how long it takes; None if it is not there."""
    tokens, labels = model.batch(*batch)
    settings = {"#heads": model.heads, "#layers": model.layers, "#steps": steps}
    with tempfile.TemporaryDirectory() as folder:
        case, result = Path(folder) / "case.npz", Path(folder) / "result.npz"
        arrays = {"#tokens": tokens, "#labels": labels, **settings, **model.parameters()}
        np.savez(case, **arrays)  # type: ignore[arg-type]  # names are no flags
        command = [python, str(PEER), str(case), str(result), str(threads), kind]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"PyTorch {kind}: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
            return None
        return dict(np.load(result))


def error(gradients: dict[str, np.ndarray], theirs: dict[str, np.ndarray]) -> float:
    """The greatest difference of a gradient, by the greatest element of it."""
    return max(
        float(np.abs(ours - theirs[f"gradient {name}"]).max() / np.abs(ours).max())
        for name, ours in gradients.items()
    )


def step_times(trainer: Trainer, batch: tuple[np.ndarray, np.ndarray], steps: int) -> list[float]:
    """The seconds of each step."""
    seconds = []
    for _ in range(steps):
        begin = time.perf_counter()
        trainer.step(*batch, rate=1e-3)
        seconds.append(time.perf_counter() - begin)
    return seconds


def main() -> None:
    """Prints a row for each batch."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--peers-python", default=sys.executable, metavar="PYTHON")
    args = parser.parse_args()
    model = Transformer()
    parameters = model.parameters()
    adjoint = relax_mlir.compile(with_gradient(model.module(), wrt=list(parameters)))
    trainer = Trainer(model.module(), model.parameters(), "adamw", weight_decay=0.01)
    trainer.executable.threads = args.threads
    print("| batch | ours | " + " | ".join(f"torch {kind}" for kind in KINDS) + " | error |")
    print("|---|" + "---|" * (len(KINDS) + 2))
    for batch in sizes():
        tokens, labels = model.batch(*batch)
        _, gradients = adjoint["main_adjoint"](tokens, labels, *parameters.values())
        named = dict(zip(parameters, gradients, strict=True))
        ours = 1e3 * float(np.median(step_times(trainer, (tokens, labels), args.steps)))
        row, worst = [f"{batch[0]} x {batch[1]}", f"{ours:.2f}"], []
        for kind in KINDS:
            theirs = peer(args.peers_python, model, batch, args.threads, args.steps, kind)
            row.append("-" if theirs is None else f"{1e3 * np.median(theirs['seconds']):.2f}")
            worst += [] if theirs is None else [error(named, theirs)]
        print("| " + " | ".join([*row, f"{max(worst):.1e}" if worst else "-"]) + " |", flush=True)


if __name__ == "__main__":
    main()
