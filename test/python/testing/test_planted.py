"""The bugs of test/planted can be planted, and its runner tells what has found them."""

import argparse
import importlib.util
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def runner() -> ModuleType:
    path = ROOT / "test" / "planted" / "run.py"
    spec = importlib.util.spec_from_file_location("planted_bugs", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_each_bug_changes_one_place(runner: ModuleType) -> None:
    bugs = list(runner.bugs())
    assert len(bugs) >= 100
    wrong = [
        f"{bug.path}: {bug.old}"
        for bug in bugs
        if (ROOT / bug.path).read_text().count(bug.old) != 1 or bug.old == bug.new
    ]
    assert wrong == []


def test_named_tests_exist(runner: ModuleType) -> None:
    named = {test for bug in runner.bugs() for test in bug.tests}
    missing = []
    for test in sorted(named):
        path, _, function = test.partition("[")[0].partition("::")
        source = ROOT / path
        if not source.exists() or (function and f"def {function}(" not in source.read_text()):
            missing.append(test)
    assert missing == []


def test_all_parts_have_bugs(runner: ModuleType) -> None:
    assert min(Counter(bug.part for bug in runner.bugs()).values()) >= 8


@pytest.mark.parametrize(
    ("command", "verdict", "told"),
    [
        ("grep -q 'x = 1' a.txt || { echo FAILED here; exit 1; }", "found", "FAILED here"),
        ("grep -q 'x = 1' a.txt || sleep 60", "found", "takes more than 1 s"),
        ("grep -q 'x = 1' a.txt || kill -9 $$", "found", "the process ends with signal 9"),
        ("exit 4", "ERROR", "without the bug, too: exit status 4"),
        ("sleep 60", "ERROR", "without the bug, too: takes more than 1 s"),
        ("true", "MISSED", ""),
    ],
)
def test_only_what_succeeds_without_the_bug_finds_it(
    runner: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    command: str,
    verdict: str,
    told: str,
) -> None:
    source, results = tmp_path / "a.txt", tmp_path / "results"
    source.write_text("x = 1")
    monkeypatch.setattr(runner, "_commands", lambda tests: [["sh", "-c", command]])
    monkeypatch.setattr(runner._Run, "_fuzzer", lambda run, bug: ["true"])
    run = runner._Run(argparse.Namespace(seconds=1, results=results), 1)
    run.folders.put(tmp_path)
    bug = runner.Bug("part", "a.txt", "x = 1", "x = 2", ("test.py",))
    outcome = run.judge(bug)
    assert (outcome.verdict, outcome.told) == (verdict, told)
    assert source.read_text() == "x = 1"
    assert runner._judged(results) == ({} if verdict == "ERROR" else {bug: outcome})
