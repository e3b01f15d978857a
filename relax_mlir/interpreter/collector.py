"""Python's garbage collector, as C code switches it off around its calls of Python.

What holds the lock of a device calls Python to have a kernel interpreted. An array that was
collected then would be freed by the device, which is in use. A call makes objects before its first
line runs, where `gc.disable` is too late; nothing is collected in calls of these builtins.
"""

import ctypes
import gc
import sys

_ASK, _DO = ctypes.CFUNCTYPE(ctypes.c_int), ctypes.CFUNCTYPE(None)


class Collector(ctypes.Structure):
    """RxCollector of `runtime/csrc/device/collector.h`."""

    _fields_ = (
        *(("is_enabled", _ASK), ("pause", _DO * 2), ("resume", _DO * 2)),
        *(("depth", ctypes.c_int), ("collects", ctypes.c_int)),
    )


_PAUSE, _RESUME = (_DO(gc.disable), _DO()), (_DO(gc.enable), _DO())
if sys.version_info[:2] == (3, 12):  # a collection that is due is made all the same, of nothing
    _PAUSE, _RESUME = (_DO(gc.disable), _DO(gc.freeze)), (_DO(gc.unfreeze), _DO(gc.enable))
COLLECTOR = Collector(_ASK(gc.isenabled), (_DO * 2)(*_PAUSE), (_DO * 2)(*_RESUME))
