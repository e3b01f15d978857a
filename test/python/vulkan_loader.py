"""A loader of Vulkan that passes calls on, counts, and has some of them fail."""

import ctypes
import gc
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from unittest import mock

SOURCE = Path(__file__).parents[1] / "lib" / "vulkan_loader.c"


class Loader:
    """The library, of which modules are users that are loaded within `nothing_left`."""

    def __init__(self, path: Path) -> None:
        self.path, self._library = path, ctypes.CDLL(str(path))

    def fail(self, function: str, after: int, result: int) -> None:
        """Has a function fail, by default the next time that it is called."""
        self._library.fake_fail(function.encode(), after, result)

    def live(self) -> int:
        """What was made and not destroyed."""
        return self._library.fake_live()

    def devices(
        self, count: int = 1, *, is_apart: bool = False, threads: int = 0, workgroup: int = 0
    ) -> None:
        """Devices, whose memory the host has no access to, and limits of their groups."""
        self._library.fake_devices(count, int(is_apart), threads, workgroup)


@cache
def _built() -> Loader:
    path = Path(tempfile.mkdtemp(prefix="vulkan-loader-")) / "libvulkan.so.1"
    command = [sys.executable, "-m", "ziglang", "cc", "-std=gnu11", "-O1", "-Wall", "-Werror"]
    command += ["-Wno-unused-variable", "-shared", "-fPIC", "-fvisibility=hidden"]
    subprocess.run([*command, str(SOURCE), "-o", str(path)], check=True, timeout=120)
    return Loader(path)


@contextmanager
def nothing_left() -> Iterator[Loader]:
    """The loader; afterwards nothing that was made within the block is left."""
    loader = _built()
    gc.collect()
    loader.devices()
    loader.fail("", 0, 0)
    before = loader.live()
    with mock.patch.dict(os.environ, RELAX_VULKAN_LOADER=str(loader.path)):
        yield loader
    gc.collect()
    assert loader.live() == before
