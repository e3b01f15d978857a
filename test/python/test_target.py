"""Targets by name: features, vector widths and what an unknown name is answered."""

import dataclasses
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import llvmlite.binding
import pytest

from relax_mlir.schedule.cpu.blocking import FAMILIES, Blocking, family_of
from relax_mlir.target import Caches, Cpu, Device, Target, TargetError, detect, text


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
        ("armv7", 16, 16),
        ("riscv64", 4, 32),
        ("aarch64-android", 16, 32),
        ("aarch64-v8.2-android", 16, 32),
        ("aarch64-v8.6", 16, 32),
        ("aarch64-v8.6-android", 16, 32),
        ("neoverse-v1", 32, 32),
        ("riscv64-v", 16, 32),
    ],
)
def test_named_levels(name: str, vector_bytes: int, registers: int) -> None:
    level = Target.parse(name)
    assert level.name == name
    assert level.host.vector_bytes == vector_bytes
    assert level.host.f32_lanes == vector_bytes // 4
    assert level.host.registers == registers
    assert level.host.triple.startswith(level.host.arch)


def test_levels_grow() -> None:
    levels = [set(Target.parse(f"x86-64{v}").host.features) for v in ("", "-v2", "-v3", "-v4")]
    assert levels[0] < levels[1] < levels[2] < levels[3]


def test_a_cpu_by_its_name() -> None:
    xeon, zen = Target.parse("sapphirerapids"), Target.parse("znver4")
    assert xeon.host.cpu == "sapphirerapids"
    assert {"amx-tile", "avx512bf16"} <= set(xeon.host.needs)
    assert xeon.host.traits == {"xeon"}
    assert zen.host.traits == set()
    assert [Target.parse(f"znver{n}").host.traits for n in (3, 5)] == [{"zen"}, {"zen5"}]
    # A virtual machine may hide them: the cores are what they are.
    hidden = Target.parse("sapphirerapids+-amx-tile")
    assert hidden.host.traits == {"xeon"}
    assert not any(feature.startswith("amx") for feature in hidden.host.needs)


def test_features_are_added_and_taken_away() -> None:
    less = Target.parse("x86-64-v4+avx512vnni+-avx512vl")
    assert less.host.has("avx512vnni")
    assert not less.host.has("avx512vl")
    assert less.host.vector_bytes == 32
    assert "-avx512vl" in less.host.llvm_features.split(",")


def test_native_is_this_machine() -> None:
    native = Target.parse("native")
    assert native == Target.parse("native")
    assert native.host.cpu
    assert all(re.fullmatch(r"[+-]\S+", feature) for feature in native.host.features)
    flags = re.search(r"^(?:flags|Features)\s*:(.*)$", open("/proc/cpuinfo").read(), re.M)
    if native.host.arch == "x86_64":
        assert native.host.has("avx2") == ("avx2" in flags.group(1).split())


@pytest.fixture
def other_machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Lets a test change what LLVM and Linux say of this machine."""
    caches = (detect.native, detect.native_caches, text.read)
    for cache in caches:
        cache.cache_clear()
    yield monkeypatch
    monkeypatch.undo()
    for cache in caches:
        cache.cache_clear()


def test_native_on_arm_has_what_linux_names(other_machine: pytest.MonkeyPatch) -> None:
    """Kernels ask for features by name, some of which LLVM tells by the CPU's name alone."""
    other_machine.setattr(detect.platform, "machine", lambda: "aarch64")
    other_machine.setattr(detect, "host_flags", lambda: {"fp", "asimd", "atomics", "asimddp"})
    other_machine.setattr(llvmlite.binding, "get_host_cpu_name", lambda: "neoverse-n1")
    other_machine.setattr(llvmlite.binding, "get_host_cpu_features", lambda: {"crc": True})
    native = Target.parse("native")
    assert (native.host.arch, native.host.cpu) == ("aarch64", "neoverse-n1")
    assert {"dotprod", "neon", "lse"} <= set(native.host.needs)
    assert native.host.has("crc")
    assert not native.host.has("i8mm")


def test_targets_are_values() -> None:
    assert hash(Target.parse("x86-64-v3")) == hash(Target.parse("x86-64-v3"))
    with pytest.raises(dataclasses.FrozenInstanceError):
        Target.parse("x86-64-v3").host = None


@pytest.mark.parametrize("name", ["", "x86-64-v9", "riscv32", "x86-64-v3+", "native avx2"])
def test_unknown_name_lists_the_accepted(name: str) -> None:
    with pytest.raises(TargetError, match=r"unknown target .*native, x86-64, .*aarch64"):
        Target.parse(name)


@pytest.mark.parametrize("name", ["aarch64-macos", "x86-64-windows", "aarch64-apple-ios"])
def test_other_systems_are_named(name: str) -> None:
    message = r"for the system '(macos|windows|apple)' of .*, but for Linux and Android; accepted"
    with pytest.raises(TargetError, match=message):
        Target.parse(name)
    with pytest.raises(TargetError, match="systems Linux and, on aarch64, Android"):
        Target.parse("x86-64-v3+triple=x86_64-unknown-linux-android")


def test_android() -> None:
    target = Target.parse("aarch64-android")
    assert (target.host.system, Target.parse("aarch64").host.system) == ("android", "linux")
    assert target.host.triple == "aarch64-unknown-linux-android"
    assert str(replace(target, host=replace(target.host, vector_bytes=8))) == (
        "aarch64-android+vector-bytes=8"
    )


def test_features_with_dashes_in_their_names() -> None:
    with_tiles = Target.parse("x86-64-v4+amx-tile+amx-bf16")
    assert with_tiles.host.has("amx-tile")
    assert {"amx-tile", "amx-bf16"} <= set(with_tiles.host.needs)
    without = Target.parse("x86-64-v4+amx-tile+amx-bf16+-amx-tile")
    assert not without.host.has("amx-tile")
    assert without.host.has("avx512vl")
    assert not without.host.has("amx-bf16"), "LLVM has it only with amx-tile"
    other = Target.parse("aarch64-v8.2+-fullfp16+-rdm")
    assert other.host.needs == ("dotprod", "fp-armv8", "lse", "neon")


def test_lengths_of_scalable_vectors() -> None:
    """Code for the shortest runs on all machines; others say what they need."""
    lengths = {
        "aarch64-v8.6+sve": (16, 0),
        "aarch64-v8.6+sve+vector-bytes=32": (32, 32),
        "neoverse-v1": (32, 32),
        "neoverse-v1+vector-bytes=16": (16, 0),
        "neoverse-v1+-sve": (16, 0),
        "riscv64-v+vector-bytes=64": (64, 64),
        "x86-64-v4": (64, 0),
    }
    for name, expected in lengths.items():
        host = Target.parse(name).host
        assert (host.vector_bytes, host.vector_length) == expected
    assert {"sve", "i8mm", "bf16"} <= set(Target.parse("neoverse-v1").host.needs)


@pytest.mark.parametrize(
    ("name", "gone"),
    [
        ("sapphirerapids+-avx2", "avx2 avx512f avx512bw avx512fp16 avx512vnni avxvnni"),
        ("znver5+-fma", "fma avx512f avx512bf16 avx512vl"),
        ("x86-64-v3+-sse4.1", "sse4.1 sse4.2 avx avx2 f16c fma"),
        ("znver4+-avx512bw", "avx512bw avx512bf16 avx512vbmi2"),
        ("x86-64-v4+-avx512f+avx2", "avx512f avx512cd"),
    ],
)
def test_with_a_feature_goes_what_implies_it(name: str, gone: str) -> None:
    """LLVM has no avx512f without fma, and code for both at once ended the process."""
    assert not set(gone.split()) & set(Target.parse(name).host.needs)
    assert Target.parse(name).host.has("ssse3")


def test_a_feature_brings_what_it_implies() -> None:
    assert {"avx512f", "fma", "avx2", "avx"} <= set(Target.parse("x86-64+avx512vl").host.needs)
    assert Target.parse("x86-64-v4+-fma+avx512bw").host.has("fma")


def test_every_family_has_a_row_of_blockings() -> None:
    names = ("x86-64-v3", "x86-64-v4", "znver3", "znver4", "znver5", "sapphirerapids", "aarch64")
    found = [family_of(Target.parse(name).host) for name in names]
    assert all(family in found for family in FAMILIES.values())
    for name in names:
        blocking = Blocking.of(Target.parse(name).host)
        sums = blocking.rows * blocking.vectors
        assert sums + blocking.vectors + 1 <= blocking.registers
        assert blocking.left_bytes <= blocking.caches.l2
        assert 4 * blocking.products.max_k * blocking.columns <= blocking.caches.l2


def test_caches_of_named_cpus_are_facts_of_the_target() -> None:
    xeon, zen = (Target.parse(name).host.caches for name in ("sapphirerapids", "znver4"))
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
    caches = Target.parse("native").host.caches
    for level, size in (("1", caches.l1), ("2", caches.l2)):
        if level in sizes:
            assert f"{size >> 10}K" == sizes[level]


def test_caches_that_linux_does_not_tell_are_those_of_the_name(monkeypatch) -> None:
    monkeypatch.setattr(detect.Path, "glob", lambda *_: iter(()))
    known = Caches(l2=3 << 20)
    assert detect.native_caches.__wrapped__(known) == known


V3 = Target.parse("x86-64-v3")


def changed(target: Target, **fields) -> Target:
    return replace(target, host=replace(target.host, **fields))


@pytest.mark.parametrize(
    ("target", "text"),
    [
        (changed(V3, vector_bytes=16), "x86-64-v3+vector-bytes=16"),
        (changed(V3, vector_bytes=32), "x86-64-v3"),
        (changed(V3, caches=Caches(l1=48 << 10, l1_ways=12)), "x86-64-v3+l1=49152+l1-ways=12"),
        (changed(V3, traits=frozenset({"zen", "zen5"})), "x86-64-v3+traits=zen/zen5"),
        (changed(V3, cpu="znver3"), "x86-64-v3+cpu=znver3"),
        (
            changed(V3, features=(*V3.host.features, "+avxvnni", "-bmi3")),
            "x86-64-v3+avxvnni+-bmi3",
        ),
        (changed(V3, features=("+avx2", "+fma")), "x86-64-v3+features=avx2/fma"),
        (replace(V3, devices=(Device.parse("cuda:sm_90"),)), "x86-64-v3@cuda:sm_90"),
        (replace(Target.parse("x86-64-v3@webgpu"), devices=()), "x86-64-v3"),
        (replace(V3, host=Target.parse("x86-64-v2").host), None),
        (replace(V3, host=Target.parse("aarch64-v8.2").host), None),
        (replace(V3, host=Target.parse("sapphirerapids+-amx-tile").host), None),
    ],
)
def test_the_name_of_a_changed_target_says_what_changed(target: Target, text: str | None) -> None:
    assert text in (None, target.name)
    assert Target.parse(str(target)) == target
    assert Target.parse(f" {target} ").host == target.host


def test_a_device_alone_has_this_machine_as_its_host() -> None:
    target = Target.parse("cuda:sm_80")
    assert target.host == Target.parse("native").host
    assert (str(target), str(target.device)) == ("cuda:sm_80", "cuda:sm_80")
    assert str(replace(target, host=V3.host)).endswith("@cuda:sm_80")


def test_shapes_of_matrices_are_a_part_of_a_device() -> None:
    device = Target.parse("x86-64-v3@vulkan:8x16x16/8x16x32").device
    assert device is not None
    assert str(device) == "vulkan:8x16x16/8x16x32"
    shapes = [device.cooperative(element) for element in ("f16", "i8", "bf16")]
    assert shapes == [(8, 16, 16), (8, 16, 32), None]
    assert Device.parse("vulkan:8x8x8").cooperative("i8") is None
    for name in ("vulkan", "cuda:sm_80"):
        assert Device.parse(name).cooperative("f16") is None


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("x86-64-v3@vulkan:16x16", "unknown device 'vulkan:16x16'; accepted are .*vulkan:16x16x16"),
        ("x86-64+vector-bytes=32", "vectors of 32 bytes are none of 'x86-64' .* 4, 8, 16"),
        ("x86-64-v4+-avx512vl+vector-bytes=64", "they may have 4, 8, 16, 32"),
        ("x86-64-v4+features=avx512f/-fma", "no CPU has 'avx512f' without 'fma'"),
        ("x86-64-v4+-sse2", "'\\+-sse2' removes 'sse2', which all code for x86_64 needs"),
        ("x86-64+-sse", "'\\+-sse' removes 'sse'"),
        ("aarch64+-fp-armv8", "'\\+-fp-armv8' removes 'fp-armv8'"),
        ("x86-64-v3+vector-bytes=24", "vectors of 24 bytes"),
        ("aarch64-v8.6+vector-bytes=32", "vectors of 32 bytes are none of .* 4, 8, 16$"),
        ("riscv64+vector-bytes=16", "vectors of 16 bytes are none of .* they may have 4$"),
        ("x86-64-v3+vector-bytes=wide", "'vector-bytes=wide' .* is not a number"),
        ("x86-64-v3+registers=32", "32 vector registers .* 16 to 16"),
        ("x86-64-v3+l2=0", "no cache is of 'l2=0'"),
        ("x86-64-v3+l1=64", "an L1 cache of 64 bytes holds no set of 8 lines of 64 bytes"),
        ("x86-64-v3+width=4", "unknown setting 'width=4' .* 'vector-bytes='"),
        ("x86-64-v3+arch=riscv32", "no code is made for 'riscv32'"),
        ("riscv64-v+-d", "'\\+-d' removes 'd', which all code for riscv64 needs"),
        ("armv7+-vfp4", "'\\+-vfp4' removes 'vfp4'"),
        ("riscv64+vector-bytes=16", "vectors of 16 bytes are none of 'generic-rv64' .* have 4$"),
        ("x86-64-v3@cuda:sm_1", "unknown device 'cuda:sm_1'; accepted are gpu, cuda:sm_75"),
        ("z80@webgpu", "unknown target 'z80@webgpu'"),
    ],
)
def test_what_cannot_be_is_refused(name: str, message: str) -> None:
    with pytest.raises(TargetError, match=message):
        Target.parse(name)


def test_parts_that_cannot_be_are_refused() -> None:
    with pytest.raises(TargetError, match="vectors of 64 bytes"):
        changed(V3, vector_bytes=64)
    with pytest.raises(TargetError, match=r"are .*, armv7, riscv64, wasm32, and systems Linux"):
        Cpu("sparc", "sparc-unknown-unknown", "generic", (), 16, 16)
    with pytest.raises(TargetError, match="unknown target 'mine'"):
        Target("mine", V3.host)
