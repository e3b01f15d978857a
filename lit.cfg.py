"""FileCheck tests and lints of relax-mlir; run them all with `lit test`.

Tests keep to what LLVM's FileCheck and PyPI's `filecheck` have in common: one prefix, no `-D`.
LLVM's is used if it is found, or named by the environment variable FILECHECK.
"""

# ruff: noqa: F821 - lit defines `config` and `lit_config`
import os
import platform
import shutil
import sys

import lit.formats

root = os.path.dirname(os.path.abspath(__file__))


def tool(*names):
    """The path of the first tool that exists, beside this Python or on the path."""
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")])
    return next(filter(None, (shutil.which(name, path=path) for name in names)), None)


filecheck = os.environ.get("FILECHECK") or tool("FileCheck", "FileCheck-22")
filecheck_is_llvm = filecheck is not None
if not filecheck_is_llvm and not tool("filecheck"):
    lit_config.fatal("neither FileCheck nor filecheck is found; try: pip install filecheck")
mlir_opt = os.environ.get("MLIR_OPT") or tool("mlir-opt", "mlir-opt-22")

config.name = "relax-mlir"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir"]
config.excludes = ["Inputs", "lib", "python"]
config.test_source_root = root  # lit adds the "test/..." of its arguments to it
config.test_exec_root = os.environ.get("LIT_OUT") or os.path.join(root, "build", "lit")

config.available_features.add(platform.machine())
if mlir_opt:
    config.available_features.add("mlir-opt")
else:
    config.excludes.append("mlir_opt.mlir")  # which is about that tool alone

python_path = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH", "")]))
config.environment["PYTHONPATH"] = python_path
config.environment["OPENBLAS_NUM_THREADS"] = "1"  # NumPy starts threads, which spin for a while
# Set for each tool again, since lit's own `cat` overwrites it for the commands that follow.
python = f"env PYTHONPATH={python_path} {sys.executable}"


sys.path.append(os.path.join(root, "test", "lib"))
import resident  # noqa: E402

try:
    environment = {**os.environ, "PYTHONPATH": python_path, "OPENBLAS_NUM_THREADS": "1"}
    socket = resident.start(environment)
except RuntimeError as error:
    lit_config.fatal(str(error))
call = f"{sys.executable} -I -S {resident.__file__} call {socket}"
if not filecheck_is_llvm:
    filecheck = f"{call} FileCheck"
# A tool's name counts as a word of a command only, not as a part of a path.
for name, command in {
    "relax-opt": f"{call} relax-opt",
    "relax-compile": f"{call} relax-compile",
    "relax-run": f"{call} relax-run",
    "FileCheck": f"{filecheck} --enable-var-scope",
    "exits": f"{sys.executable} {root}/test/lib/exits.py",
    "mlir-opt": mlir_opt or "mlir-opt",
    # Comes with the bindings, and so is of their version; of our dialects it knows nothing.
    "bindings-opt": tool("torch-mlir-opt") or "torch-mlir-opt",
}.items():
    config.substitutions.append((rf"(?<![\w/.-]){name}(?![\w/.-])", command))
config.substitutions += [("%PYTHON", python), ("%ROOT", root)]

for name in ("HOME", "RELAX_CACHE_DIR", "TMPDIR"):
    if name in os.environ:
        config.environment[name] = os.environ[name]
