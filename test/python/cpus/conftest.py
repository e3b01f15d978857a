"""Tests on emulated CPUs share programs with the tests of schedules."""

import sys
from pathlib import Path

for folder in ("schedule", "ops"):
    sys.path.append(str(Path(__file__).parents[1] / folder))
