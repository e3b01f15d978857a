"""Tables of commands in `benchmarks/`: who is best, and by how much."""

import argparse
import importlib.util
import json
import shutil
import sys
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest

from relax_mlir.machine.limits import Limits, Machine

FOLDER = Path(__file__).resolve().parents[3] / "benchmarks"
OURS = "relax-mlir"
MODULES = ("cases", "comparison", "llm_results", "peers", "interleaved", "worker")


@pytest.fixture
def comparison(monkeypatch):
    """The module, which lies beside the commands; it is forgotten again."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(FOLDER))
    import comparison

    yield comparison
    for name in set(sys.modules) - before:
        if name.partition(".")[0] in MODULES:
            del sys.modules[name]


def command(name, monkeypatch):
    """A command's module, under a name that no helper of other tests has."""
    spec = importlib.util.spec_from_file_location(f"{name}_command", FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def kernels(comparison, monkeypatch):
    return command("kernels", monkeypatch)


@pytest.fixture
def dynamic(comparison, monkeypatch):
    return command("dynamic", monkeypatch)


def row(comparison, seconds, floor=None, case=None):
    """A row of programs with these seconds; a text says why there are none."""
    made = {}
    for name, values in seconds.items():
        outcome = made[name] = comparison.Outcome()
        if isinstance(values, str):
            outcome.why_not = values
        else:
            outcome.seconds = values
    return comparison.Row(case or {"m": 3}, 2, made, floor)


def squares(comparison):
    """A comparison of programs that square numbers."""

    class Squares(comparison.Comparison):
        heading = ("case", "unit")
        tolerance = MappingProxyType({"f32": 1e-3})

        def label(self, case):
            return f"{case['m']} squared"

        def begin(self, case):
            return [self.label(case), "per s"]

        def figure(self, case, seconds):
            return f"{1 / seconds:.1f}"

        def reference(self, case):
            return np.array([[case["m"] ** 2.0]])

        def floor(self, case, limits):
            return 1.0 / limits.f32

        def groups(self, cases):
            return [cases]

    return Squares()


def test_ratio_is_that_of_the_best_other_program_within_rounds(comparison):
    found = row(
        comparison,
        {OURS: [1.0, 2.0, 4.0], "a": [3.0, 3.0, 12.0], "b": [9.0, 9.0, 1.0], "c": "wrong"},
        floor=0.5,
    )
    # The medians of "a" and "b" are 3 and 9; quotients of "a" are 3, 1.5 and 3.
    assert found.best_peer() == "a"
    assert found.ratio() == 3.0
    assert found.share() == 0.25


def test_nothing_is_said_about_what_is_not_there(comparison):
    alone = row(comparison, {OURS: [1.0], "a": "has no float8"})
    assert (alone.best_peer(), alone.ratio(), alone.share()) == (None, None, None)
    failed = row(comparison, {OURS: "wrong: off by 1", "a": [1.0]}, floor=1.0)
    assert (failed.best_peer(), failed.ratio(), failed.share()) == ("a", None, None)


def test_table_has_figures_and_reasons_once(comparison):
    rows = [
        row(comparison, {OURS: [0.5], "a": [0.25], "b": "no\nreason"}, 0.1, {"m": 2}),
        row(comparison, {OURS: [0.5], "a": [4.5], "b": "no"}, None, {"m": 3}),
    ]
    lines = squares(comparison).table(rows, [OURS, "a", "b"]).splitlines()
    assert lines[0].split()[:5] == ["case", "unit", OURS, "a", "b"]
    # 0.5 and 9 have the geometric mean 2.121.
    assert lines[1].split() == "2 squared per s 2.0 4.0 - a 0.50 1.00 20%".split()
    assert lines[2].split() == "3 squared per s 2.0 0.2 - a 9.00 1.00 -".split()
    assert lines[3:] == [
        "geometric mean of the ratios: 2.121; least 0.50; below 1: 1",
        "b: no (2 squared, 3 squared)",
    ]
    assert len({len(line) for line in lines[:3]}) == 1


def test_a_curve_is_measured_again_where_it_falls_off(comparison, kernels, monkeypatch):
    # Seconds of one row, in each measurement: 3 was held up once, 5 falls off indeed.
    seconds = {2: [1.0], 3: [1.5, 1.1], 4: [1.0, 1.0, 1.0], 5: [1.4, 1.3, 1.5], 8: [1.0, 1.0, 1.0]}
    options = argparse.Namespace(cases=[kernels.cases.matmul(m, 7, 9, "f32") for m in seconds])
    asked = []

    def run(_self, _contenders, options, threads):
        asked.append([case["m"] for case in options.cases])
        count = [sum(m in each for each in asked) - 1 for m in asked[-1]]
        times = [case["m"] * seconds[case["m"]][min(i, len(seconds[case["m"]]) - 1)]
                 for case, i in zip(options.cases, count, strict=True)]  # fmt: skip
        return [
            row(comparison, {OURS: [time]}, case=case)
            for case, time in zip(options.cases, times, strict=True)
        ]

    monkeypatch.setattr(kernels.Kernels, "run", run)
    rows = kernels.Curve().run([], options, 1)
    assert asked == [[2, 3, 4, 5, 8], [2, 3, 4, 5, 8], [4, 5, 8]]
    lines = kernels.Curve().table(rows, [OURS]).splitlines()
    assert [line.split()[0] for line in lines if line.endswith("<-")] == ["5"]
    assert lines[-1] == "below 0.85 at m = [5]"
    assert lines[3].split()[-2:] == ["0.91", "0.91"]


def test_a_curve_says_where_weights_take_as_long_for_fewer_rows(comparison, kernels):
    # Rows 5 and 6 take what lies between 4 and 8; 7 takes a quarter more.
    seconds = {4: 8.0, 5: 8.5, 6: 9.0, 7: 9.5 * 1.25, 8: 10.0}
    shape = [kernels.cases.matmul(m, 7, 9, "f32") for m in seconds]
    rows = [row(comparison, {OURS: [seconds[case["m"]]]}, case=case) for case in shape]
    points = kernels._points(rows)
    np.testing.assert_allclose([point.line for point in points], [1, 1, 1, 0.8, 1])
    np.testing.assert_allclose(points[1].rate, 5 / 8.5 / (8 / 10.0))
    verdict = kernels.Curve().table(rows, [OURS]).splitlines()[-1]
    assert verdict == (
        "below 0.85 at m = [5, 6, 7]; of these, in time with the line between their neighbours: "
        "[5, 6]"
    )


PROGRAM = """
import numpy as np
from worker import Prepared

class Square:
    version = "7"
    wrong = 0.0

    def __init__(self, threads):
        self.threads = threads

    def prepare(self, case):
        if case["m"] == 5:
            raise NotImplementedError("cannot do 5")
        return Prepared(lambda: [np.array([[case["m"] ** 2.0 + self.wrong]])])

class Wrong(Square):
    wrong = 1.0
"""


def test_programs_take_turns_and_are_checked(comparison, tmp_path, monkeypatch, capsys):
    (tmp_path / "squaring.py").write_text(PROGRAM)
    shutil.copy(FOLDER / "worker.py", tmp_path)
    monkeypatch.setattr(comparison.interleaved, "FOLDER", tmp_path)
    limits = Limits(threads=1, read=1.0, read_huge_pages=1.0, f32=1.0, bf16=None, int8=None)
    machine = Machine("a machine", 1, (limits,))
    monkeypatch.setattr(comparison, "measure_machine", lambda threads, seconds: machine)
    options = argparse.Namespace(
        threads=[1],
        peers_python=sys.executable,
        rounds=2,
        seconds=0.0,
        cases=[{"m": m, "dtype": "f32"} for m in (3, 5)],
        json=tmp_path / "found.json",
    )
    specs = {OURS: "squaring:Square", "wrong": "squaring:Wrong", "none": "nowhere:Program"}
    status = squares(comparison).main(specs, options)
    text = capsys.readouterr().out
    assert status == 1  # ours cannot do 5
    assert "none is absent: No module named 'nowhere'" in text
    assert f"{OURS}: cannot do 5 (5 squared)" in text
    found = json.loads(options.json.read_text())
    assert [len(each["outcomes"][OURS]["seconds"]) for each in found] == [2, 0]
    assert found[0]["outcomes"]["wrong"]["why_not"].startswith("wrong: off by 0.11")


def test_share_of_known_sizes_is_the_median_of_rounds(dynamic):
    def taking(*seconds, why_not=""):
        return dynamic.Outcome(list(seconds), why_not=why_not)

    found = {
        "slow": (taking(2e-6, 4e-6, 4e-6), taking(1e-6, 2e-6, 4e-6)),
        "level": (taking(1e-6), taking(1e-6)),
        "bad": (taking(1e-6, why_not="wrong: off by 1"), taking(1e-6)),
    }
    lines = dynamic._table(found).splitlines()
    assert lines[1].split() == "slow 4.00 2.00 0.500 0.50 to 0.75 below 0.97".split()
    assert lines[2].split() == "level 1.00 1.00 1.000 1.00 to 1.00".split()
    # 0.5 and 1 have the geometric mean 0.707.
    assert lines[3:] == ["bad: wrong: off by 1", "geometric mean of the shares: 0.707"]


@pytest.mark.parametrize("m", [1, 5])
def test_known_sizes_run_on_the_arrays_of_unknown_ones(dynamic, m):
    from peers.ours import Kernels

    program = Kernels(1)
    for case in (dynamic.cases.matmul(m, 7, 100), dynamic.cases.rows("argmax", m, 70)):
        first = program.prepare(case).run()[0]
        answer = np.array(first)
        second = program.prepare({**case, "specialised": True}).run()[0]
        assert np.shares_memory(first, second)
        wanted = dynamic.cases.reference(case)
        np.testing.assert_allclose(answer, wanted, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(second, wanted, rtol=1e-4, atol=1e-4)


def test_arrays_begin_with_a_cache_line(comparison):
    import cases

    for case in (cases.rows("layer_norm", 3, 7), cases.matmul(1, 33, 32, "int8")):
        arrays, values = cases.inputs(case), cases._inputs(case)
        assert all(np.array_equal(*pair) for pair in zip(arrays, values, strict=True))
        assert not any(x.ctypes.data % 64 for x in arrays)
    for dtype in ("float32", "uint16", "int64"):
        out = cases.empty((3, 5), dtype)
        assert out.shape == (3, 5)
        assert out.dtype == dtype
        assert out.ctypes.data % 64 == 0
    assert cases.empty((0, 5)).shape == (0, 5)
