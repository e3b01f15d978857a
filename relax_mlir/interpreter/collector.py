"""Python's garbage collector, as C code switches it off around its calls of Python.

What holds the lock of a device calls Python to have a kernel interpreted. An array that was
collected then would be freed by the device, which is in use. A call makes objects before its first
line runs, where `gc.disable` is too late; nothing is collected in calls of these builtins.
"""

import ctypes
import gc

_ASK, _DO = ctypes.CFUNCTYPE(ctypes.c_int), ctypes.CFUNCTYPE(None)


class Collector(ctypes.Structure):
    """RxCollector: what C code calls."""

    _fields_ = (("is_enabled", _ASK), ("disable", _DO), ("enable", _DO))


COLLECTOR = Collector(_ASK(gc.isenabled), _DO(gc.disable), _DO(gc.enable))
