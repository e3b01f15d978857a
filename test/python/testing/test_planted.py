"""The bugs that are planted to judge the fuzzer can be planted: see test/planted/run.py."""

import importlib.util
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def _bugs() -> list:
    path = ROOT / "test" / "planted" / "run.py"
    spec = importlib.util.spec_from_file_location("planted_bugs", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return list(module.bugs())


def test_each_bug_changes_one_place() -> None:
    bugs = _bugs()
    assert len(bugs) >= 100
    wrong = [
        f"{bug.path}: {bug.old}"
        for bug in bugs
        if (ROOT / bug.path).read_text().count(bug.old) != 1 or bug.old == bug.new
    ]
    assert wrong == []


def test_all_parts_have_bugs() -> None:
    assert min(Counter(bug.part for bug in _bugs()).values()) >= 8
