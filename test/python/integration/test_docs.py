"""The documentation: every example in it runs, every quotation and link is right."""

import ast
import doctest
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#]+)[^)]*\)")
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
RELAX_OPT = [sys.executable, "-m", "relax_mlir.tools.relax_opt"]


def blocks(page: Path, language: str) -> list[str]:
    return [text for kind, text in BLOCK.findall(page.read_text()) if kind == language]


def tool(command: list[str], folder: Path) -> subprocess.CompletedProcess:
    """Runs `relax-opt ...` in a folder, from this source tree."""
    return subprocess.run(
        [*RELAX_OPT, *command[1:]],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )


def page_id(page: Path) -> str:
    return page.stem


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_links_lead_somewhere(page: Path) -> None:
    for link in LINK.findall(CODE.sub("", page.read_text())):
        if "://" not in link:
            assert (page.parent / link).exists(), link


def test_the_index_leads_to_every_page() -> None:
    index = (ROOT / "docs" / "README.md").read_text()
    assert {page.name for page in (ROOT / "docs").glob("*.md")} - {"README.md"} <= {
        Path(link).name for link in LINK.findall(index)
    }


@pytest.mark.parametrize(
    "page", [page for page in PAGES if ">>> " in page.read_text()], ids=page_id
)
def test_sessions_show_what_python_prints(page: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = doctest.testfile(str(page), module_relative=False)
    assert found.attempted > 3
    assert found.failed == 0


def test_the_readme_runs_what_ci_runs() -> None:
    readme = (ROOT / "README.md").read_text()
    script = (ROOT / ".ci" / "run").read_text()
    steps = [line.split()[2:] for line in re.findall(r"^(?:step|beside) .*", script, re.M)][3:]
    paragraph = readme[readme.index("In an environment of your own") :].split("\n\n")[0]
    commands = [shown.split() for shown in re.findall(r"`([^`]+)`", paragraph)]
    assert commands.pop(0)[:3] == ["pip", "install", "-e"]
    assert len(commands) == len(steps) == 6
    for command, step in zip(commands, steps):
        assert command[0] == step[0]
        assert set(command) <= set(step)


def test_ir_by_example_quotes_its_files() -> None:
    page = ROOT / "docs" / "ir_by_example.md"
    sections = [text for text in page.read_text().split("\n## ") if "```mlir" in text]
    assert len(sections) == 6
    for section in sections:
        file = page.parent / LINK.search(section)[1]
        quoted = [text for kind, text in BLOCK.findall(section) if kind == "mlir"]
        for text in quoted:
            assert text in file.read_text()


def test_ir_by_example_shows_what_relax_opt_prints() -> None:
    shown = blocks(ROOT / "docs" / "ir_by_example.md", "text")
    assert len(shown) == 5
    for text in shown:
        command, _, output = text.removeprefix("$ ").partition("\n")
        assert output in tool(shlex.split(command), ROOT).stdout


def test_adding_a_pass_adds_a_pass(tmp_path: Path) -> None:
    page = ROOT / "docs" / "adding_a_pass.md"
    for language, suffix in (("python", ".py"), ("mlir", ".mlir")):
        (code,) = blocks(page, language)
        (tmp_path / f"drop_double_negation{suffix}").write_text(code)
    test = tmp_path / "drop_double_negation.mlir"
    run_line = test.read_text().splitlines()[0].removeprefix("// RUN: ")
    command, check = run_line.replace("%s", test.name).split(" | ")
    output = tool(shlex.split(command), tmp_path)
    assert output.returncode == 0, output.stderr
    assert check == f"FileCheck {test.name}"
    filecheck = shutil.which("filecheck", path=str(Path(sys.executable).parent))
    subprocess.run(
        [filecheck, "--enable-var-scope", str(test)], input=output.stdout, text=True, check=True
    )


def test_the_map_names_every_part() -> None:
    text = (ROOT / "docs" / "map.md").read_text()
    parts = [*ROOT.glob("relax_mlir/*"), *ROOT.glob("dialects/*"), *ROOT.glob("test/*")]
    hidden = {"__init__.py", "__pycache__", "py.typed", "Output"}
    empty = {part.name for part in parts if part.is_dir() and not any(part.iterdir())}
    names = {part.name for part in parts} - hidden - empty
    missing = [name for name in sorted(names) if not re.search(rf"[`/]{re.escape(name)}", text)]
    assert not missing


def test_the_map_names_nothing_else() -> None:
    """What it shows as a path is one, from the root or below a folder of the same table."""
    text = (ROOT / "docs" / "map.md").read_text()
    paths = re.findall(r"^\| `([\w./-]+)`", text, re.MULTILINE)
    assert len(paths) > 30
    for path in paths:
        assert any((ROOT / folder / path).exists() for folder in ("", "relax_mlir", "test")), path


def test_the_map_is_in_the_order_of_import_ranks() -> None:
    text = (ROOT / "docs" / "map.md").read_text()
    table = text[text.index("## The compiler") : text.index("## From a module")]
    rows = re.findall(r"^\| (`[^|]*`) \|", table, re.MULTILINE)
    parts = [name.strip("`/").removesuffix(".py") for row in rows for name in row.split(", ")]
    lint = ast.parse((ROOT / "test" / "lint" / "imports.py").read_text())
    ranks = next(op.value for op in lint.body if isinstance(op, ast.Assign))
    rank = {
        name.value: index
        for index, names in enumerate(ranks.elts)
        for name in ast.walk(names)
        if isinstance(name, ast.Constant)
    }
    shown = [rank[part] for part in parts]
    assert shown == sorted(shown)
    assert len(shown) > 15
