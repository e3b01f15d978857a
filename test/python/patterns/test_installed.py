"""Patterns, libraries and passes that an installed package declares."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from relax_mlir.errors import UsageError
from relax_mlir.passes import Pipeline

OWN = '''
from dataclasses import dataclass

from relax_mlir.passes import Pass
from relax_mlir.patterns import register_dispatch, register_pattern

register_pattern("own.sum", "add(%x, %y)")
register_dispatch(
    "own", "own.sgemm", "matmul(%lhs: f32[m, k], %rhs: f32[k, n])", ("lhs", "rhs"),
    c_symbol="own_sgemm", convention="cblas_sgemm_nn", providers=["libown.so"], work="m*n*k",
)


@dataclass(frozen=True)
class OwnNothing(Pass):
    """Does nothing."""

    def run(self, op):
        print("ran")
'''
ENTRIES = """
[relax_mlir.patterns]
own = own_extension

[relax_mlir.passes]
own-nothing = own_extension
"""
MODULE = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "graph.add"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    (tmp_path / "own_extension.py").write_text(OWN)
    info = tmp_path / "own_extension-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: own-extension\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRIES)
    return tmp_path


@pytest.mark.parametrize(
    ("element", "shows"),
    [
        ("relax-fuse-ops-by-pattern{patterns=own.sum}", 'graph.composite = "own.sum"'),
        ("own-nothing", "ran"),
        ("relax-dispatch-library{libraries=own}", "graph.add"),
    ],
)
def test_names_are_found(installed: Path, element: str, shows: str, monkeypatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(installed), prepend=":")
    command = [
        sys.executable,
        "-m",
        "relax_mlir.tools.relax_opt",
        "-",
        f"--pass-pipeline={element}",
    ]
    done = subprocess.run(command, input=MODULE, capture_output=True, text=True, check=True)
    assert shows in done.stdout


@pytest.mark.parametrize(
    ("entries", "code", "message"),
    [
        (ENTRIES, "import sys; sys.exit(0)", "declares as 'own_extension': SystemExit: 0"),
        (ENTRIES, "1 / 0", "declares as 'own_extension': ZeroDivisionError"),
        (ENTRIES, "", "declares as 'own_extension': no class in it is a Pass of that name"),
        ("[relax_mlir.passes]\nown-nothing = no:", "", "'no:': ModuleNotFoundError: No module"),
        ("[relax_mlir.passes]\nown-nothing = !", "", "'!': that is no name of a module"),
        ("[relax_mlir.passes]\nown-nothing = a.", "", "'a.': that is no name of a module"),
        ("\udcff", "", "cannot read the entry points of the installed package 'own-extension'"),
    ],
)
def test_what_a_package_declares_may_be_broken(
    installed: Path, entries: str, code: str, message: str, monkeypatch
) -> None:
    info = installed / "own_extension-1.0.dist-info"
    (info / "entry_points.txt").write_text(entries, errors="surrogateescape")
    (installed / "own_extension.py").write_text(code)
    monkeypatch.syspath_prepend(str(installed))
    monkeypatch.delitem(sys.modules, "own_extension", raising=False)
    with pytest.raises(UsageError, match=re.escape(message)):
        Pipeline.parse("own-nothing")


def test_others_are_not_found() -> None:
    for element, message in (
        ("relax-fuse-ops-by-pattern{patterns=own.sum}", "no pattern 'own.sum' is registered"),
        ("own-nothing", "unknown pass 'own-nothing'"),
        ("relax-dispatch-library{libraries=own}", "unknown library 'own'"),
    ):
        with pytest.raises(UsageError, match=message):
            Pipeline.parse(element)
