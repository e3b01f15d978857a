"""Runs a command and succeeds if its exit status is the one given: `exits 2 relax-opt --nope`."""

import subprocess
import sys

wanted = int(sys.argv[1])
status = subprocess.run(sys.argv[2:], check=False).returncode
if status != wanted:
    sys.exit(f"exits: expected status {wanted}, but got {status}")
