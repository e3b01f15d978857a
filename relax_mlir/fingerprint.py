"""Hashes of what cached results depend on: this package, its compilers, and the machine.

Nothing here imports MLIR or LLVM, so that a program can look up a cached result in milliseconds.
"""

import hashlib
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


@cache
def compiler_fingerprint() -> str:
    """A hash of this package's sources and the versions of its compilers."""
    digest = hashlib.sha256()
    root = Path(__file__).parent
    dialects = (root / "dialects").rglob("*.py")  # a symbolic link, which rglob does not follow
    others = [*sorted(root.rglob("*.bc")), *sorted(root.rglob("*.wgsl"))]
    for path in [*sorted(root.rglob("*.py")), *sorted(dialects), *others]:
        status = path.stat()
        digest.update(f"{path.relative_to(root)} {status.st_size} {status.st_mtime_ns}\n".encode())
    for name in ("torch-mlir", "llvmlite"):
        try:
            digest.update(f"{name} {version(name)}\n".encode())
        except PackageNotFoundError:
            digest.update(f"{name} unknown\n".encode())
    return digest.hexdigest()


@cache
def processor_fingerprint() -> str:
    """Linux's description of the first processor, which determines a "native" target."""
    keys = ["vendor_id", "cpu family", "model", "model name", "stepping", "flags", "Features"]
    keys += ["CPU implementer", "CPU part", "CPU variant"]
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
        first = []
        for line in lines:
            if not line.strip():
                break
            if line.partition(":")[0].strip() in keys:
                first.append(line.strip())
    return "\n".join(first)
