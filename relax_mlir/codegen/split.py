"""Cuts LLVM IR text into parts that compile on their own, so that cores share a module.

    define void @main() { call void @a() ... }      part 1: define @main, declare hidden @a
    define private void @a() { ... @table ... }  -> part 2: define hidden @a, @table
    define private void @b() { ... }                     define internal @b, if only @a names it

Functions that are exported, or touch data that is exported or written to, make up the first part;
each group of the others that call one another makes up a part. Functions that are not exported
become hidden, which the linker makes local, and those that one part alone names become internal.
Constants go wherever they are read.

Source: LLVM language reference, "Module Structure"; the layout is that of LLVM's printer, which
puts each entity of a module on one line, but for the bodies of functions.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

_NAME = r'@(?:"[^"]*"|[-\w$.]+)'
_REFERENCE = re.compile(_NAME)
_LINKAGE = (
    r"(?:private|internal|available_externally|linkonce_odr|linkonce|weak_odr|weak|common|"
    r"appending|extern_weak|external|dso_local|dso_preemptable|hidden|protected|default)"
)
_FUNCTION_HEAD = re.compile(rf"(define|declare) ((?:{_LINKAGE} )*)(.*)", re.DOTALL)
_VARIABLE = re.compile(rf"({_NAME}) = .*?\b(global|constant|alias|ifunc) ")


@dataclass
class _Function:
    """One definition: its first line without keyword and linkage, its body, what both name."""

    name: str
    linkage: str
    head: str
    body: list[str]
    references: frozenset[str]


@dataclass
class _Module:
    common: list[str] = field(default_factory=list)
    declarations: dict[str, str] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    functions: dict[str, _Function] = field(default_factory=dict)


def split_module(text: str, exports: Collection[str]) -> list[str]:
    """The parts of the module, the one with the exported functions first.

    Parts depend on the functions in them alone, so a function that has not changed gives the text
    it gave before.
    """
    module = _read(text)
    exported = _named_so(exports)
    pinned = {name for name, line in module.variables.items() if _is_pinned(line)}
    first = [
        name
        for name, function in module.functions.items()
        if name in exported or pinned & _closure(function.references, module.variables)
    ]
    groups = _groups(module, set(first))
    if first or pinned:
        groups.insert(0, first)
    named = [_named(module, names, pinned if names is first else ()) for names in groups]
    parts = []
    for i, names in enumerate(groups):
        outside = exported.union(*named[:i], *named[i + 1 :])
        parts.append(_part(module, names, named[i], exported, outside))
    return parts


def with_linkage(text: str, outside: Collection[str], exports: Collection[str] = ()) -> str:
    """The module as one part, of which others name the functions `outside`.

    Those of `exports` keep the linkage they have.
    """
    module = _read(text)
    everything = {*module.variables, *module.declarations, *module.functions}
    return _part(module, list(module.functions), everything, _named_so(exports), _named_so(outside))


def _named_so(names: Collection[str]) -> set[str]:
    """Function names as LLVM may print them."""
    return {f"@{name}" for name in names} | {f'@"{name}"' for name in names}


def _found(pattern: re.Pattern[str], text: str) -> re.Match[str]:
    """The first match of what a line of LLVM's printer always has."""
    match = pattern.search(text)
    assert match is not None, text
    return match


def _read(text: str) -> _Module:
    module = _Module()
    lines = iter(text.splitlines())
    for line in lines:
        if line.startswith("define "):
            body = []
            for inner in lines:
                if inner == "}":
                    break
                if inner and not inner.startswith(";"):
                    body.append(inner)
            _, linkage, head = _found(_FUNCTION_HEAD, line).groups()
            name = _found(_REFERENCE, head)[0]
            references = frozenset(_REFERENCE.findall("\n".join([head, *body]))) - {name}
            module.functions[name] = _Function(name, linkage, head, body, references)
        elif line.startswith("declare "):
            module.declarations[_found(_REFERENCE, line)[0]] = line
        elif match := _VARIABLE.match(line):
            module.variables[match[1]] = line
        elif line and not line.startswith((";", "source_filename")):
            module.common.append(line)
    return module


def _is_pinned(line: str) -> bool:
    """Whether there must be one copy of a variable: it is written to, or known outside."""
    name, kind = _found(_VARIABLE, line).groups()
    private = line.startswith((f"{name} = private", f"{name} = internal"))
    return kind != "constant" or not private


def _closure(names: Iterable[str], variables: dict[str, str]) -> set[str]:
    """Those names, and all that the initial values of the variables among them name."""
    found, todo = set(), list(names)
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            if name in variables:
                todo.extend(_REFERENCE.findall(variables[name]))
    return found


def _groups(module: _Module, first: set[str]) -> list[list[str]]:
    """The functions outside of the first part, grouped by who calls whom, in module order."""
    leader = {name: name for name in module.functions if name not in first}

    def find(name: str) -> str:
        while leader[name] != name:
            name = leader[name]
        return name

    for name in list(leader):
        for other in _closure(module.functions[name].references, module.variables):
            if other in leader:
                leader[find(other)] = find(name)
    groups: dict[str, list[str]] = {}
    for name in leader:
        groups.setdefault(find(name), []).append(name)
    return list(groups.values())


def _named(module: _Module, names: Sequence[str], more: Collection[str]) -> set[str]:
    """All that the named functions and more variables name, and the constants they name name."""
    references = {r for name in names for r in module.functions[name].references}
    return _closure([*references, *more], module.variables)


def _part(
    module: _Module,
    names: Sequence[str],
    named: Collection[str],
    exported: Collection[str],
    outside: Collection[str],
) -> str:
    """A module with the named functions; declares what else they name. Others name `outside`."""
    variables = [line for name, line in module.variables.items() if name in named]
    declared = [line for name, line in module.declarations.items() if name in named]
    for name, function in module.functions.items():
        if name in named and name not in names:
            linkage = "" if name in exported else "hidden "
            declared.append(f"declare {linkage}{_without_body(function.head)}")
    defined = []
    for name in names:
        function = module.functions[name]
        linkage = "hidden " if name in outside else "internal "
        linkage = function.linkage if name in exported else linkage
        defined.append("\n".join([f"define {linkage}{function.head}", *function.body, "}"]))
    return "\n".join([*variables, *declared, *defined, *module.common, ""])


def _without_body(head: str) -> str:
    """`void @f(ptr %0) #0 align 8 !dbg !3 {` -> `void @f(ptr %0)`."""
    depth, at = 0, head.index("(", _found(_REFERENCE, head).end())
    for at in range(at, len(head)):
        depth += {"(": 1, ")": -1}.get(head[at], 0)
        if depth == 0:
            break
    return head[: at + 1]
