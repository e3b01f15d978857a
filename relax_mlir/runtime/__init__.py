"""The C runtime that is linked into every compiled module: its sources and its bitcode.

`csrc/relax_runtime.h` is its interface. Nothing here imports the compiler.
"""

from pathlib import Path

__all__ = ["bitcode_path"]


def bitcode_path(arch: str, system: str = "linux", part: str = "") -> Path:
    """The LLVM bitcode of the runtime for an architecture, such as `aarch64`, and a system, if any.

    `part` is one of the runtime of modules whose kernels run on devices: "device", or the device.

    Raises:
        FileNotFoundError: there is none; the message lists those that exist, or how to build them.
    """
    directory = Path(__file__).resolve().parent / "bitcode"
    name = "-".join(filter(None, (arch, system, part)))
    path = directory / f"{name}.bc"
    if path.is_file():
        return path
    built = sorted(path.stem for path in directory.glob("*.bc"))
    if built:
        raise FileNotFoundError(
            f"the runtime has no bitcode for '{name}', only for {', '.join(built)}"
        )
    raise FileNotFoundError(
        f"the runtime's bitcode '{path}' is missing: run 'python -m relax_mlir.runtime.build' "
        "(needs 'pip install ziglang')"
    )
