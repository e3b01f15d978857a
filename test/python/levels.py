"""The levels of optimisation that tests compile at: two of the four, which change by the day.

`ONE_LEVEL` has one of them, for large modules.
"""

import os

from relax_mlir.pipelines import OPT_LEVELS

ROTATION = os.environ.get("RELAX_ROTATION", "all")  # which conftest.py sets
LEVELS = tuple(x for x in OPT_LEVELS if ROTATION == "all" or (x + int(ROTATION)) % 2 == 0)
ONE_LEVEL = LEVELS if ROTATION == "all" else (OPT_LEVELS[int(ROTATION) % 4],)
