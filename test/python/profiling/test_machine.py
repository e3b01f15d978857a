"""The limits of a machine: the kernels compute what they claim, the figures survive a file."""

import json
import subprocess
import sys

import numpy as np
import pytest

from relax_mlir.compiler import compile
from relax_mlir.machine import limits
from relax_mlir.machine import measure as machine
from relax_mlir.machine.limits import Limits, Machine, table
from relax_mlir.schedule.cpu.isa import amx
from relax_mlir.schedule.cpu.isa.peak_kernels import (
    CHAINS,
    READ_ROW,
    STEPS,
    TILE_STEPS,
    UNITS,
    CpuPeaks,
)
from relax_mlir.target import Target
from relax_mlir.tools.relax_bench_machine import main

SMALL = Machine(
    "some processor",
    8,
    (Limits(1, 1e9, 2e9, 3e9, None, 5e9), Limits(4, 4e9, 8e9, 9e9, None, 2e10)),
    {"f32": "fma", "int8": "tdpbusd"},
)


NATIVE = Target.parse("native")
TARGETS = [NATIVE]
if NATIVE.host.has("amx-tile"):
    TARGETS.append(Target.parse("native+-amx-tile"))


def run(unit: str, x: np.ndarray, target: Target = NATIVE) -> np.ndarray:
    return compile(CpuPeaks(target.host).computing(unit), target)["main"](x)


def rows(values: list[float]) -> np.ndarray:
    lanes = NATIVE.host.f32_lanes
    return np.repeat(np.array(values, np.float32)[:, None], lanes, axis=1)


def test_f32_adds_all_the_squares():
    x = rows([0.5, -2.0, 0.0])  # powers of two: exact
    np.testing.assert_array_equal(run("f32", x), x * x * CHAINS * STEPS)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("unit", CpuPeaks(NATIVE.host).units)
def test_each_unit_adds_all_its_products(unit, target):
    x = rows([1.0, -2.0])
    times = CHAINS * STEPS
    if amx.has_tiles(target.host, unit):  # each number is multiplied with those of a row of a tile
        times = len(amx.SUMS) * TILE_STEPS * amx.LANES
    assert CpuPeaks(target.host).operations(unit) == times * UNITS[unit].operations * (
        amx.ROWS * amx.LANES if amx.has_tiles(target.host, unit) else target.host.f32_lanes
    )
    if unit == "int8":
        products = x.view(np.int8).astype(np.int64) * x.view(np.uint8)
        sums = products.reshape(*x.shape, 4).sum(axis=-1) * times
        np.testing.assert_array_equal(run(unit, x, target).view(np.int32), sums.astype(np.int32))
    else:  # in bfloat16 each value is a pair: 0, and the value itself
        np.testing.assert_array_equal(run(unit, x, target), x * x * times)


def test_a_fresh_process_measures_each_unit():
    """Nothing else has asked the system for tile registers before."""
    code = (
        "from relax_mlir.machine.measure import measure_machine\n"
        "print(measure_machine([1], 1e-3).to_json())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (limits,) = Machine.from_json(done.stdout).limits
    assert {unit for unit in UNITS if limits.peak(unit)} == {*CpuPeaks(NATIVE.host).units}


def test_peaks_are_of_tile_registers_where_there_are_any():
    found = {
        name: [
            CpuPeaks(Target.parse(name).host).instruction(unit) for unit in ("f32", "bf16", "int8")
        ]
        for name in ("x86-64-v4", "x86-64-v4+amx-tile+amx-int8")
    }
    assert found == {
        "x86-64-v4": ["fma", "vdpbf16ps", "vpdpbusd"],
        "x86-64-v4+amx-tile+amx-int8": ["fma", "vdpbf16ps", "tdpbusd"],
    }


def test_the_table_names_instructions():
    text = table(SMALL)
    assert "int8 by tdpbusd, GOP/s" in text
    assert "bf16, GFLOP/s        none        none" in text


def test_reading_reads_everything():
    x = np.random.default_rng(0).integers(-8, 9, (3, READ_ROW)).astype(np.float32)
    sums = compile(CpuPeaks(NATIVE.host).reading(), NATIVE)["main"](x)
    np.testing.assert_array_equal(sums.sum(axis=1), x.sum(axis=1))


def test_targets_without_the_instructions_have_float32_only():
    assert CpuPeaks(Target.parse("x86-64-v3").host).units == ["f32"]


def test_limits_are_those_of_the_next_smaller_number_of_threads():
    assert [SMALL.at(number).threads for number in (1, 3, 4, 100)] == [1, 1, 4, 4]


def test_figures_survive_json():
    assert Machine.from_json(SMALL.to_json()) == SMALL


def test_measured_figures_are_kept_until_the_processor_changes(tmp_path, monkeypatch):
    monkeypatch.setenv("RELAX_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(limits, "processor_name", lambda: "some processor")
    monkeypatch.setattr(limits, "num_cpus", lambda: 8)
    monkeypatch.setattr(machine, "measure_machine", lambda: SMALL)
    assert machine.this_machine() == SMALL
    monkeypatch.setattr(machine, "measure_machine", lambda: pytest.fail("measured again"))
    assert machine.this_machine() == SMALL
    other = Machine("another", 8, SMALL.limits)
    monkeypatch.setattr(limits, "processor_name", lambda: "another")
    monkeypatch.setattr(machine, "measure_machine", lambda: other)
    assert machine.this_machine() == other


def test_a_damaged_file_is_measured_anew(tmp_path, monkeypatch):
    monkeypatch.setenv("RELAX_CACHE_DIR", str(tmp_path))
    (tmp_path / "machine.json").write_text('{"processor": 3}')
    monkeypatch.setattr(machine, "measure_machine", lambda: SMALL)
    assert machine.this_machine() == SMALL


def test_figures_without_instructions_are_measured_anew(tmp_path, monkeypatch):
    """Those of older versions, which did not know of tile registers."""
    monkeypatch.setenv("RELAX_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(limits, "processor_name", lambda: "some processor")
    monkeypatch.setattr(limits, "num_cpus", lambda: 8)
    fields = json.loads(SMALL.to_json())
    del fields["instructions"]
    (tmp_path / "machine.json").write_text(json.dumps(fields))
    assert limits.saved_machine() is None


def test_the_tool_prints_json(capsys):
    assert main(["--threads", "1", "--seconds", "0.001", "--json"]) == 0
    (figures,) = json.loads(capsys.readouterr().out)["limits"]
    assert figures["threads"] == 1
    assert all(figures[name] > 0 for name in ("read", "read_huge_pages", "f32"))


@pytest.mark.parametrize("wrong", [["--threads", "0"], ["--seconds", "0"]])
def test_the_tool_refuses_what_cannot_be(wrong, capsys):
    assert main(wrong) == 2
    assert wrong[0] in capsys.readouterr().err
