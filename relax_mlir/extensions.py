"""Code from outside this package that takes part in compilation: operators and passes.

A compiled module depends on it as on the compiler itself, so a hash of its sources is part of the
cache key. The sources of a module are its own file and those of its imports, nested ones included,
except the standard library, this package, and other installed packages.

An installed package is asked for what it declares as an entry point, when a name of it is used:

    [project.entry-points."relax_mlir.patterns"]      patterns "own.narrow", the library "own"
    own = "own_patterns"
    [project.entry-points."relax_mlir.passes"]        the pass
    drop-double-negation = "own_passes"

If the sources are uncertain, nothing is cached: a module without a file (a notebook, `python -c`),
or one whose file was changed since this process started, and so may differ from what was loaded.
"""

import ast
import hashlib
import importlib
import importlib.metadata
import importlib.util
import os
import sys
import time
import traceback
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from relax_mlir.errors import UsageError

_OWN = __name__.partition(".")[0]


def load(name: str) -> str:
    """Imports a Python file, or a module by its dotted name, once; returns the module's name.

    Raises UsageError if it does not exist or cannot be imported.
    """
    if not name.endswith(".py"):
        module = name
    elif Path(name).is_file():
        path = Path(name).resolve()
        module = f"{_OWN}_loaded.{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:16]}"
    else:
        raise UsageError(f"cannot load '{name}': no such file")
    try:
        return module if module in sys.modules else _import(name, module)
    except (Exception, SystemExit) as error:  # one that exits would end us, with its own status
        if isinstance(error, ModuleNotFoundError) and error.name == module:
            raise UsageError(f"cannot load '{name}': no such module, and no .py file") from None
        raise UsageError(f"cannot load '{name}': {_described(error, name)}") from error


@dataclass(frozen=True)
class Declared:
    """What an installed package declares for a name, as an entry point of a group."""

    name: str
    value: str
    package: str

    def load(self) -> str:
        """Imports the module; returns its name. Raises UsageError that names the package."""
        module = self.value.partition(":")[0].strip()
        if not all(part.isidentifier() for part in module.split(".")):
            raise self.error("that is no name of a module")
        try:
            return module if module in sys.modules else _import("", module)
        except (Exception, SystemExit) as error:
            raise self.error(_described(error, module)) from error

    def error(self, why: str) -> UsageError:
        """That the declaration is of no use."""
        return UsageError(
            f"cannot load '{self.name}', which the installed package '{self.package}' declares as"
            f" '{self.value}': {why}"
        )


def installed(group: str, name: str) -> Declared | None:
    """What an installed package declares for a name, None if none does.

    Raises UsageError if the entry points of a package cannot be read.
    """
    try:
        declared = importlib.metadata.entry_points(group=f"{_OWN}.{group}")
    except Exception as error:
        raise UsageError(
            f"cannot read the entry points of {_unreadable()}: {type(error).__name__}: {error}"
        ) from error
    entry = next((each for each in declared if each.name == name), None)
    if entry is None:
        return None
    return Declared(name, entry.value, entry.dist.name if entry.dist else "?")


def _unreadable() -> str:
    """The installed package whose entry points cannot be read."""
    for package in importlib.metadata.distributions():
        try:
            _ = package.entry_points
        except Exception:
            return f"the installed package '{package.name}'"
    return "installed packages"


def _import(name: str, module: str) -> str:
    if not name.endswith(".py"):
        importlib.import_module(module)
        return module
    spec = importlib.util.spec_from_file_location(module, Path(name).resolve())
    assert spec is not None  # the name ends in .py
    assert spec.loader is not None
    sys.modules[module] = loaded = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(loaded)
    except BaseException:
        del sys.modules[module]
        raise
    return module


def _described(error: BaseException, name: str) -> str:
    """The error and the last line of the file that led to it."""
    if isinstance(error, SyntaxError):
        return f"line {error.lineno}: {error.msg}"
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if Path(frame.filename) == Path(name).resolve()]
    where = f"line {lines[-1]}: " if lines else ""
    return f"{where}{type(error).__name__}: {error}"


_contributed: set[str] = set()


def contribute(module: str) -> None:
    """Notes that a module has registered something that passes use, such as a pattern."""
    _contributed.add(module)


def has_contributed(package: str) -> bool:
    """Whether a module, or one in that package, has registered something."""
    return any(is_part(module, of=package) for module in _contributed)


def is_part(module: str, of: str) -> bool:
    """Whether a module is `of`, or in that package."""
    return f"{module}.".startswith(f"{of}.")


def from_outside(modules: Iterable[str]) -> list[str]:
    """The modules that are not of this package, without duplicates."""
    return sorted({name for name in modules if name.partition(".")[0] != _OWN})


def fingerprint(modules: Iterable[str]) -> bytes:
    """A hash of the sources of the loaded modules that are from outside.

    Empty if there are none; random if it is uncertain what was loaded.
    """
    names = from_outside(modules)
    if not names:
        return b""
    digest = hashlib.sha256()
    for path in _sources(names):
        text = _unchanged(path)
        if text is None:
            return os.urandom(digest.digest_size)
        digest.update(f"{path} {len(text)}\n".encode() + text)
    return digest.digest()


def _sources(names: Iterable[str]) -> list[str]:
    """The files of modules and of their imports; an empty name for a module without a file."""
    sources: dict[str, str] = {name: _file(name) or "" for name in names}
    waiting = list(names)
    while waiting:
        importing = waiting.pop()
        for name in _imports(importing, sources[importing]):
            path = None if name in sources else _file(name)
            if path and _takes_part(name, path, importing):
                sources[name] = path
                waiting.append(name)
    return sorted(set(sources.values()))


def _file(name: str) -> str | None:
    """The file of a module, loaded or not; None if there is none."""
    if name == "__main__":
        redefined = sys.flags.interactive or hasattr(sys, "ps1")
        return None if redefined else getattr(sys.modules[name], "__file__", None)
    if name in sys.modules:
        return getattr(sys.modules[name], "__file__", None)
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):  # a member of a module need not be a module
        return None
    return spec.origin if spec is not None and spec.has_location else None


def _takes_part(name: str, path: str, importing: str) -> bool:
    """Whether an imported module is the user's own, or in the package of its importer."""
    package = name.partition(".")[0]
    if package == _OWN or package in sys.stdlib_module_names:
        return False
    return package == importing.partition(".")[0] or not _INSTALLED.intersection(Path(path).parts)


_INSTALLED = {"site-packages", "dist-packages"}


def _imports(name: str, path: str) -> Iterator[str]:
    """The names of modules that the imports in a module's file may refer to."""
    text = _read(path) if path.endswith(".py") else None
    if text is None:
        return
    is_package = Path(path).name == "__init__.py"
    package = name.split(".") if is_package else name.split(".")[:-1]
    for level, module, members in _import_statements(text):
        parents = package[: len(package) - level + 1] if level else []
        base = ".".join([*parents, *([module] if module else [])])
        parts = base.split(".")
        yield from (".".join(parts[: i + 1]) for i in range(len(parts)))
        yield from (f"{base}.{member}" for member in members)


@lru_cache
def _import_statements(text: bytes) -> list[tuple[int, str, tuple[str, ...]]]:
    """Level, module and members of each import, those in functions included."""
    statements: list[tuple[int, str, tuple[str, ...]]] = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            statements += [(0, alias.name, ()) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            members = tuple(alias.name for alias in node.names)
            statements.append((node.level, node.module or "", members))
    return statements


def _unchanged(path: str) -> bytes | None:
    """The bytes of a file; None if it cannot be read, or was changed since this process started."""
    text = _read(path)
    # The change time of the inode, which no program can set.
    return None if text is None or os.stat(path).st_ctime > _process_start() else text


def _read(path: str) -> bytes | None:
    try:
        return Path(path).read_bytes()
    except OSError:  # no such file, or a member of an archive
        return None


@cache
def _process_start() -> float:
    """The start time of this process, in seconds of `time.time`."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    ticks = int(fields[19])  # starttime, the 22nd of all fields
    age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    return time.time() - age
