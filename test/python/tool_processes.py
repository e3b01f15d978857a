"""Command-line tools in processes of their own, forked from one that has imported them already."""

import os
import subprocess
import sys
import tempfile
from functools import lru_cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "test" / "lib"))

import resident  # noqa: E402


def run_tool(
    tool: str, *args: str, cwd: Path, stdin: str = ""
) -> "subprocess.CompletedProcess[str]":
    """What `relax-opt`, `relax-compile`, `relax-run` or `relax-llm` does in a folder."""
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out:
        with tempfile.TemporaryFile() as err:
            given.write(stdin.encode())
            given.seek(0)
            streams = [file.fileno() for file in (given, out, err)]
            status = resident.call(_server(), [tool, *args], streams, str(cwd))
            for file in (out, err):
                file.seek(0)
            return subprocess.CompletedProcess(
                [tool, *args], status, out.read().decode(), err.read().decode()
            )


@lru_cache
def _server() -> str:
    return resident.start({**os.environ, "PYTHONPATH": str(ROOT)})
