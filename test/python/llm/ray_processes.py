"""Processes of Ray, by their names."""

import os
from pathlib import Path


def processes_of(name: bytes, ancestor: int) -> list[int]:
    """The processes below another one whose command line has this name."""
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            command = Path("/proc", entry, "cmdline").read_bytes()
            if name in command and ancestor in ancestors(int(entry)):
                found.append(int(entry))
        except OSError:  # it has ended
            continue
    return found


def ancestors(process: int) -> list[int]:
    """The parent of a process, its parent, and so on."""
    found = []
    while process > 1:
        status = Path("/proc", str(process), "stat").read_text()
        process = int(status.rpartition(")")[2].split()[1])
        found.append(process)
    return found
