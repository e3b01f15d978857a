"""Programs in processes of their own, for what ends a process or changes all of it."""

import os
import subprocess
import sys
from pathlib import Path


def run(
    code: str, *arguments: Path | str, timeout: float = 60, **environment: str
) -> subprocess.CompletedProcess:
    """What Python says of `code` in a process of its own, with `arguments` behind its name."""
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
        capture_output=True,
        text=True,
        timeout=timeout,
    )
