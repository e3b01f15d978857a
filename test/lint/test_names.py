# RUN: %PYTHON %s %ROOT
"""Fails on two Python files of tests or benchmarks with one name.

Pytest imports a test, and what stands beside it, by the file's name alone: of two with one name it
finds the first, for both.
"""

import sys
from collections import defaultdict
from pathlib import Path

root = Path(sys.argv[1])
places = defaultdict(list)
for folder in (root / "test" / "python", root / "benchmarks"):
    for path in sorted(folder.rglob("*.py")):
        if path.name not in ("conftest.py", "__init__.py"):
            places[path.name].append(path)
if len(places) < 20:
    sys.exit(f"{root} does not look like the project")
twice = [paths for paths in places.values() if len(paths) > 1]
sys.exit("\n".join(f"one name: {', '.join(map(str, paths))}" for paths in twice) or 0)
