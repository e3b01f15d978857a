"""Parses and prints the text of a target; both are inverse for any target.

native                              this machine, with all its features
x86-64-v4+avx512vnni+-avx512vl      a level, with one feature added and one removed
x86-64-v4+vector-bytes=32+l2=524288 a level, with other vectors and caches
native@cuda:sm_90                   this machine, and a device
native@cuda:sm_90@vulkan            this machine, and two devices
"""

import re
from collections.abc import Sequence
from dataclasses import fields, replace
from functools import lru_cache
from typing import Any

from relax_mlir.target.cpu import Caches, Cpu
from relax_mlir.target.detect import native, native_caches
from relax_mlir.target.device import Device, split_devices
from relax_mlir.target.errors import TargetError
from relax_mlir.target.implied import changed
from relax_mlir.target.known import ANDROID, NAMED, make_cpu

_FEATURE = re.compile(r"-?[a-z0-9.]+(?:-[a-z0-9.]+)*")
_OTHER_SYSTEMS = re.compile(r"macosx?|darwin|apple|ios|windows|win32|msvc|mingw|freebsd")
_SETTING = re.compile(r"([a-z0-9-]+)=([^+,@\s]*)")
_CACHES = {field.name for field in fields(Caches)}
_SETTINGS = {
    field.name.replace("_", "-"): field.name
    for kind in (Cpu, Caches)
    for field in fields(kind)
    if field.name != "caches"
}


@lru_cache(maxsize=256)
def read(text: str) -> tuple[Cpu, tuple[Device, ...]]:
    """Parses a target's text to its CPU and devices; TargetError if it is invalid."""
    host, devices = split_devices(text)
    name, *changes = re.split(r"[+,]", host)
    features = [change for change in changes if "=" not in change]
    settings = [_SETTING.fullmatch(change) for change in changes if "=" in change]
    if not all(map(_FEATURE.fullmatch, features)) or name not in ("native", *NAMED):
        accepted = ", ".join(["native", *NAMED])
        if other := _OTHER_SYSTEMS.search(name):
            raise TargetError(
                f"no code is made for the system '{other[0]}' of target '{text}', but for Linux "
                f"and Android; accepted are {accepted}"
            )
        raise TargetError(
            f"unknown target '{text}'; accepted are {accepted}, each with '+feature' or "
            "'+-feature' appended"
        )
    arch, cpu, given = native() if name == "native" else _named(name)
    made = make_cpu(arch, cpu, changed(arch, given, features))
    if name.endswith(ANDROID):
        made = replace(made, triple=f"{arch}-unknown-linux{ANDROID}")
    if name == "native":
        made = replace(made, caches=native_caches(made.caches))
    values: dict[str, Any] = {}
    for setting, change in zip(settings, (c for c in changes if "=" in c), strict=True):
        key = _SETTINGS.get(setting[1]) if setting else None
        if setting is None or key is None:
            raise TargetError(
                f"unknown setting '{change}' of target '{text}'; settings are "
                + ", ".join(f"'{known}='" for known in _SETTINGS)
            )
        values[key] = _value(key, setting[2], text)
    return _with(made, values), devices


def spelled(name: str, host: Cpu, devices: Sequence[Device]) -> str:
    """The text of the target of `name` with another CPU or other devices."""
    base = split_devices(name)[0].partition("+")[0].partition(",")[0]
    known = set(read(base)[0].features)
    plain = [f.removeprefix("+") for f in host.features if f not in known]
    text = "+".join([base, *plain])
    like, _ = read(text)
    differing = [
        f"{key}={_written(_field(host, field))}"
        for key, field in _SETTINGS.items()
        if _field(host, field) != _field(like, field)
    ]
    text = "+".join([text, *differing])
    return "@".join([text, *map(str, devices)])


def _named(name: str) -> tuple[str, str, tuple[str, ...]]:
    arch, cpu, names = NAMED[name]
    return arch, cpu, tuple(f"+{feature}" for feature in names)


def _value(key: str, text: str, target: str) -> Any:
    """Parses the value of a setting."""
    parts = [part for part in text.split("/") if part]
    if key == "features":
        return tuple(sorted(part if part[0] == "-" else f"+{part}" for part in parts))
    if key == "traits":
        return frozenset(parts)
    if key in ("arch", "triple", "cpu"):
        return text
    if not text.isdecimal():
        raise TargetError(f"'{key.replace('_', '-')}={text}' of target '{target}' is not a number")
    return int(text)


def _with(cpu: Cpu, settings: dict[str, Any]) -> Cpu:
    caches = {key: value for key, value in settings.items() if key in _CACHES}
    others = {key: value for key, value in settings.items() if key not in _CACHES}
    return replace(cpu, caches=replace(cpu.caches, **caches), **others)


def _field(cpu: Cpu, name: str) -> Any:
    return getattr(cpu.caches if name in _CACHES else cpu, name)


def _written(value: Any) -> str:
    if isinstance(value, int | str):
        return str(value)
    return "/".join(part.removeprefix("+") for part in sorted(value))
