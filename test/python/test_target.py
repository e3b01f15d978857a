"""Targets by name: features, vector widths and what an unknown name is answered."""

import dataclasses
import re

import pytest

from relax_mlir.target import Target, TargetError


@pytest.mark.parametrize(
    ("name", "vector_bytes", "registers"),
    [
        ("x86-64", 16, 16),
        ("x86-64-v2", 16, 16),
        ("x86-64-v3", 32, 16),
        ("x86-64-v4", 64, 32),
        ("aarch64", 16, 32),
        ("aarch64-v8.2", 16, 32),
    ],
)
def test_named_levels(name: str, vector_bytes: int, registers: int) -> None:
    target = Target.parse(name)
    assert target.name == name
    assert target.vector_bytes == vector_bytes
    assert target.f32_lanes == vector_bytes // 4
    assert target.num_vector_registers == registers
    assert target.triple.startswith(target.arch)


def test_levels_grow() -> None:
    levels = [set(Target.parse(f"x86-64{v}").features) for v in ("", "-v2", "-v3", "-v4")]
    assert levels[0] < levels[1] < levels[2] < levels[3]


def test_features_are_added_and_taken_away() -> None:
    target = Target.parse("x86-64-v4+avx512vnni+-avx512vl")
    assert target.has("avx512vnni")
    assert not target.has("avx512vl")
    assert target.vector_bytes == 32
    assert "-avx512vl" in target.llvm_features.split(",")


def test_native_is_this_machine() -> None:
    target = Target.parse("native")
    assert target == Target.parse("native")
    assert target.cpu
    assert all(re.fullmatch(r"[+-]\S+", feature) for feature in target.features)
    flags = re.search(r"^(?:flags|Features)\s*:(.*)$", open("/proc/cpuinfo").read(), re.M)
    if target.arch == "x86_64":
        assert target.has("avx2") == ("avx2" in flags.group(1).split())


def test_targets_are_values() -> None:
    assert hash(Target.parse("x86-64-v3")) == hash(Target.parse("x86-64-v3"))
    with pytest.raises(dataclasses.FrozenInstanceError):
        Target.parse("x86-64-v3").cpu = "i386"


@pytest.mark.parametrize("name", ["", "x86-64-v9", "riscv64", "x86-64-v3+", "native avx2"])
def test_unknown_name_lists_the_accepted(name: str) -> None:
    with pytest.raises(TargetError, match=r"unknown target .*native, x86-64, .*aarch64"):
        Target.parse(name)
