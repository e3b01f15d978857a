"""Sets the linkage of the functions of LLVM IR text that is a part of a shared object.

    define void @main() { call void @a() ... }      define @main, if it is exported
    define private void @a() { ... @table ... }  -> define hidden @a, if other parts refer to it
    define private void @b() { ... }                define internal @b, if only this part does

The linker makes hidden functions local.

Source: LLVM language reference, "Module Structure"; the layout is that of LLVM's printer, which
puts each entity of a module on one line, except the bodies of functions.
"""

import re
from collections.abc import Collection

_FIRST_NAME = re.compile(r'@(?:"[^"]*"|[-\w$.]+)')
_LINKAGE = (
    r"(?:private|internal|available_externally|linkonce_odr|linkonce|weak_odr|weak|common|"
    r"appending|extern_weak|external|dso_local|dso_preemptable|hidden|protected|default)"
)
_DEFINITION = re.compile(rf"^define ((?:{_LINKAGE} )*)(.*)$", re.MULTILINE)


def with_linkage(text: str, outside: Collection[str], exports: Collection[str] = ()) -> str:
    """The module as one part; other parts refer to its functions `outside`.

    Those of `exports` keep their linkage.
    """
    exported, hidden = _as_printed(exports), _as_printed(outside)

    def defined(match: re.Match[str]) -> str:
        linkage, head = match.groups()
        name = _FIRST_NAME.search(head)
        assert name is not None, head
        if name[0] not in exported:
            linkage = "hidden " if name[0] in hidden else "internal "
        return f"define {linkage}{head}"

    return _DEFINITION.sub(defined, text)


def _as_printed(names: Collection[str]) -> set[str]:
    """Function names as LLVM may print them."""
    return {f"@{name}" for name in names} | {f'@"{name}"' for name in names}
