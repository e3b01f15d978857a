"""Targets by name: features, vector widths and what an unknown name is answered."""

import dataclasses
import re
from pathlib import Path

import llvmlite.binding
import pytest

from relax_mlir import target
from relax_mlir.schedule.cpu.blocking import FAMILIES, Blocking
from relax_mlir.target import Caches, Target, TargetError


@pytest.mark.parametrize(
    ("name", "vector_bytes", "registers"),
    [
        ("x86-64", 16, 16),
        ("x86-64-v2", 16, 16),
        ("x86-64-v3", 32, 16),
        ("x86-64-v4", 64, 32),
        ("znver3", 32, 16),
        ("znver4", 64, 32),
        ("znver5", 64, 32),
        ("sapphirerapids", 64, 32),
        ("aarch64", 16, 32),
        ("aarch64-v8.2", 16, 32),
    ],
)
def test_named_levels(name: str, vector_bytes: int, registers: int) -> None:
    level = Target.parse(name)
    assert level.name == name
    assert level.vector_bytes == vector_bytes
    assert level.f32_lanes == vector_bytes // 4
    assert level.num_vector_registers == registers
    assert level.triple.startswith(level.arch)


def test_levels_grow() -> None:
    levels = [set(Target.parse(f"x86-64{v}").features) for v in ("", "-v2", "-v3", "-v4")]
    assert levels[0] < levels[1] < levels[2] < levels[3]


def test_a_cpu_by_its_name() -> None:
    xeon, zen = Target.parse("sapphirerapids"), Target.parse("znver4")
    assert xeon.cpu == "sapphirerapids"
    assert {"amx-tile", "avx512bf16"} <= set(xeon.needs)
    assert xeon.family == "xeon"
    assert zen.family == "avx512"
    assert [Target.parse(f"znver{n}").family for n in (3, 5)] == ["zen", "zen5"]
    # A virtual machine may hide them: the cores are what they are.
    hidden = Target.parse("sapphirerapids+-amx-tile")
    assert hidden.family == "xeon"
    assert not any(feature.startswith("amx") for feature in hidden.needs)


def test_features_are_added_and_taken_away() -> None:
    less = Target.parse("x86-64-v4+avx512vnni+-avx512vl")
    assert less.has("avx512vnni")
    assert not less.has("avx512vl")
    assert less.vector_bytes == 32
    assert "-avx512vl" in less.llvm_features.split(",")


def test_native_is_this_machine() -> None:
    native = Target.parse("native")
    assert native == Target.parse("native")
    assert native.cpu
    assert all(re.fullmatch(r"[+-]\S+", feature) for feature in native.features)
    flags = re.search(r"^(?:flags|Features)\s*:(.*)$", open("/proc/cpuinfo").read(), re.M)
    if native.arch == "x86_64":
        assert native.has("avx2") == ("avx2" in flags.group(1).split())


def test_native_on_arm_has_what_linux_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels ask for features by name, some of which LLVM tells by the CPU's name alone."""
    monkeypatch.setattr(target.platform, "machine", lambda: "aarch64")
    monkeypatch.setattr(target, "host_flags", lambda: {"fp", "asimd", "atomics", "asimddp"})
    monkeypatch.setattr(llvmlite.binding, "get_host_cpu_name", lambda: "neoverse-n1")
    monkeypatch.setattr(llvmlite.binding, "get_host_cpu_features", lambda: {"crc": True})
    target._native.cache_clear()
    try:
        native = Target.parse("native")
    finally:
        target._native.cache_clear()
    assert (native.arch, native.cpu) == ("aarch64", "neoverse-n1")
    assert {"dotprod", "neon", "lse"} <= set(native.needs)
    assert native.has("crc")
    assert not native.has("i8mm")


def test_targets_are_values() -> None:
    assert hash(Target.parse("x86-64-v3")) == hash(Target.parse("x86-64-v3"))
    with pytest.raises(dataclasses.FrozenInstanceError):
        Target.parse("x86-64-v3").cpu = "i386"


@pytest.mark.parametrize("name", ["", "x86-64-v9", "riscv64", "x86-64-v3+", "native avx2"])
def test_unknown_name_lists_the_accepted(name: str) -> None:
    with pytest.raises(TargetError, match=r"unknown target .*native, x86-64, .*aarch64"):
        Target.parse(name)


def test_features_with_dashes_in_their_names() -> None:
    with_tiles = Target.parse("x86-64-v4+amx-tile+amx-bf16")
    assert with_tiles.has("amx-tile")
    assert {"amx-tile", "amx-bf16"} <= set(with_tiles.needs)
    without = Target.parse("x86-64-v4+amx-tile+amx-bf16+-amx-tile")
    assert not without.has("amx-tile")
    assert without.has("avx512vl")
    assert not without.has("amx-bf16"), "LLVM has it only with amx-tile"
    other = Target.parse("aarch64+-fp-armv8")
    assert other.has("neon")
    assert not other.has("fp-armv8")


def test_every_family_has_a_row_of_blockings() -> None:
    names = ("x86-64-v3", "x86-64-v4", "znver3", "znver4", "znver5", "sapphirerapids", "aarch64")
    assert {Target.parse(name).family for name in names} == set(FAMILIES)
    for name in names:
        blocking = Blocking.of(Target.parse(name))
        sums = blocking.rows * blocking.vectors
        assert sums + blocking.vectors + 1 <= blocking.registers
        assert blocking.left_bytes <= blocking.caches.l2
        assert 4 * blocking.products.most_k * blocking.columns <= blocking.caches.l2


def test_caches_of_named_cpus_are_facts_of_the_target() -> None:
    xeon, zen = Target.parse("sapphirerapids").caches, Target.parse("znver4").caches
    assert (xeon.l1, xeon.l1_ways, xeon.l2) == (48 << 10, 12, 2 << 20)
    assert (zen.l1, zen.l1_ways, zen.l2) == (32 << 10, 8, 1 << 20)
    assert xeon.l1_sets == zen.l1_sets == 64


def test_caches_of_this_machine_are_what_linux_says() -> None:
    folder = Path("/sys/devices/system/cpu/cpu0/cache")
    sizes = {
        (index / "level").read_text().strip(): (index / "size").read_text().strip()
        for index in folder.glob("index[0-9]*")
        if (index / "type").read_text().strip() != "Instruction"
    }
    caches = Target.parse("native").caches
    for level, size in (("1", caches.l1), ("2", caches.l2)):
        if level in sizes:
            assert f"{size >> 10}K" == sizes[level]


def test_caches_that_linux_does_not_tell_are_those_of_the_name(monkeypatch) -> None:
    monkeypatch.setattr(target.Path, "glob", lambda *_: iter(()))
    known = Caches(l2=3 << 20)
    assert target._native_caches.__wrapped__(known) == known
