"""Builds the C runtime's bitcode along with the Python package; the rest is in pyproject.toml."""

import runpy
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

RUNTIME = Path("relax_mlir", "runtime")


class BuildPy(build_py):
    """Copies the package and compiles the runtime: into the wheel, or into the tree if editable."""

    def run(self) -> None:
        """Runs the command."""
        super().run()
        root = Path() if self.editable_mode else Path(self.build_lib)
        build = runpy.run_path(str(RUNTIME / "build.py"))["build"]
        build((root / RUNTIME / "bitcode").absolute())


setup(cmdclass={"build_py": BuildPy})
