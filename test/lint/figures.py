# RUN: %PYTHON %s %ROOT
"""Fails if a table of figures on a page is not what `benchmarks/results/` says."""

import subprocess
import sys
from pathlib import Path

script = Path(sys.argv[1]) / "benchmarks" / "figures.py"
sys.exit(subprocess.run([sys.executable, script, "--check"], check=False).returncode)
