"""The cost of a large constant: time and memory of compiling, loading and calling.

    python benchmarks/constants.py                   # 64 MiB to 1 GiB
    python benchmarks/constants.py --mebibytes 256

Each row is measured in a process of its own, with an empty cache. `extra` is the peak of resident
memory beyond what the process had with the constant in it; a file that is mapped counts once it is
touched. `load` is measured in a second process, which then reads the constant by a call.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

KINDS = ("dense", "resource")
TEXT = """
func.func @main(%x: tensor<1x{n}xf32>) -> tensor<1x{n}xf32> {{
  %c = arith.constant dense<0.0> : tensor<1x{n}xf32>
  %0 = "graph.add"(%x, %c) : (tensor<1x{n}xf32>, tensor<1x{n}xf32>) -> tensor<1x{n}xf32>
  return %0 : tensor<1x{n}xf32>
}}"""


def start_of_peak() -> float:
    """The memory of this process in MiB, from where `peak` begins anew."""
    Path("/proc/self/clear_refs").write_text("5")
    return peak()


def peak() -> float:
    """The most memory of this process since `start_of_peak`, in MiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (peak_kib,) = (line.split()[1] for line in lines if line.startswith("VmHWM:"))
    return int(peak_kib) / 1024


def compile_one(kind: str, elements: int, path: str) -> dict[str, float]:
    """Compiles a module with a constant of that many f32, and saves it."""
    import numpy as np

    import relax_mlir
    from relax_mlir.bindings import ir
    from relax_mlir.dialects import make_context

    with make_context(), ir.Location.unknown():
        relax_mlir.compile(TEXT.format(n=3))  # what is loaded once is no cost of the constant
        data = np.arange(elements, dtype=np.float32)
        module = ir.Module.parse(TEXT.format(n=elements))
        constant = module.body.operations[0].regions[0].blocks[0].operations[0]
        type_ = ir.RankedTensorType.get([1, elements], ir.F32Type.get())
        if kind == "dense":
            shaped = data.reshape(1, elements)
            constant.attributes["value"] = ir.DenseElementsAttr.get(shaped, type=type_)
        else:
            constant.attributes["value"] = ir.DenseResourceElementsAttr.get_from_buffer(
                data, "constant", type_
            )
        before, start = start_of_peak(), time.perf_counter()
        made = relax_mlir.compile(module)
        seconds, extra = time.perf_counter() - start, peak() - before
        made.save(path)
    return {"compile_s": seconds, "extra_mib": extra}


def load_one(elements: int, path: str) -> dict[str, float]:
    """Loads the file, and checks what a call reads."""
    import numpy as np

    import relax_mlir
    import relax_mlir.executable

    before, start = start_of_peak(), time.perf_counter()
    made = relax_mlir.load(path)
    seconds, extra = time.perf_counter() - start, peak() - before
    result = made["main"](np.ones((1, elements), np.float32))
    expected = np.arange(elements, dtype=np.float32) + np.float32(1)
    if not np.array_equal(result[0], expected):
        raise SystemExit("the compiled module reads other elements than it was given")
    return {"load_ms": 1e3 * seconds, "load_mib": extra}


def measured(folder: str, *words: str) -> dict[str, float]:
    """The results of a process of this script with its own cache."""
    environment = {
        **os.environ,
        "RELAX_CACHE_DIR": str(Path(folder) / "cache"),
        "RELAX_CACHE_BYTES": str(8 << 30),
    }
    command = [sys.executable, __file__, "--one", *words]
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--mebibytes", type=int, nargs="+", default=[64, 256, 1024])
    parser.add_argument("--one", nargs="+", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        kind, elements, path = args.one[0], int(args.one[1]), args.one[2]
        result = load_one(elements, path) if kind == "load" else compile_one(kind, elements, path)
        print(json.dumps(result))
        return
    print(f"{'MiB':>5} {'kind':9} {'compile s':>9} {'extra MiB':>9} {'load ms':>8} {'load MiB':>8}")
    for mebibytes in args.mebibytes:
        for kind in KINDS:
            with tempfile.TemporaryDirectory() as folder:
                words = str(mebibytes << 18), str(Path(folder) / "made.so")
                row = measured(folder, kind, *words) | measured(folder, "load", *words)
            print(
                f"{mebibytes:5} {kind:9} {row['compile_s']:9.2f} {row['extra_mib']:9.0f} "
                f"{row['load_ms']:8.1f} {row['load_mib']:8.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
