"""The elements of a textual pipeline, and the parser that checks their names and options."""

from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module

from relax_mlir.bindings import ir, passmanager
from relax_mlir.errors import PipelineError, UsageError
from relax_mlir.extensions import has_contributed, installed, is_part, load
from relax_mlir.passes.base import Pass
from relax_mlir.passes.names import PACKAGE, among, own_passes
from relax_mlir.passes.upstream import UPSTREAM_PASSES

MODULE = "builtin.module"
ANY = "any"
_loaded: dict[str, type[Pass]] = {}


@dataclass(frozen=True)
class Upstream:
    """A pass of MLIR itself, as text."""

    name: str
    options: str = ""

    def __str__(self) -> str:
        return self.name + ("{" + self.options + "}" if self.options else "")


@dataclass(frozen=True)
class Nested:
    """A pipeline for the ops named `anchor` directly below."""

    anchor: str
    elements: tuple["Pass | Upstream | Nested", ...]

    def __str__(self) -> str:
        return f"{self.anchor}({','.join(map(str, self.elements))})"


Element = Pass | Upstream | Nested


def is_upstream(element: Element) -> bool:
    """Whether MLIR's own pass manager can run the whole element."""
    if isinstance(element, Nested):
        return all(map(is_upstream, element.elements))
    return isinstance(element, Upstream)


@lru_cache
def parse(text: str) -> Nested:
    """Parses a pipeline; a list without an anchor is for `builtin.module`.

    Raises PipelineError, which names the element and the closest known name.
    """
    elements = _Parser(text).parse()
    lone = elements[0] if len(elements) == 1 else None
    root = lone if isinstance(lone, Nested) else Nested(MODULE, elements)
    with ir.Context(load_on_create_dialects=()):
        _check(root)
    return root


def load_passes(source: str) -> list[str]:
    """Registers the passes of a Python file, or of a module or package by its name.

    Returns their names: the class names, hyphenated. Raises UsageError if the file or module does
    not exist, or has no pass and registers nothing else, such as patterns.
    """
    loaded = load(source)
    names = _register(loaded)
    if not names and not has_contributed(loaded):
        raise UsageError(f"cannot load passes from '{source}': no class in it is a Pass")
    parse.cache_clear()
    return names


def _register(module: str) -> list[str]:
    """Makes the passes of an imported module or package known; returns their names."""
    groups = [classes for name, classes in Pass.by_module.items() if is_part(name, of=module)]
    classes = [cls for each in groups for cls in each]
    _loaded.update({cls.name(): cls for cls in classes})
    return [cls.name() for cls in classes]


def loaded_passes() -> dict[str, type[Pass]]:
    """The passes of `load_passes`, by name."""
    return dict(_loaded)


def find_pass(name: str) -> type[Pass] | None:
    """The class of a pass of this package, imported on first use; None if there is none."""
    if name in _loaded:
        return _loaded[name]
    files = own_passes()
    if name not in files:
        return None
    module = f"{PACKAGE}.{files[name].stem}"
    import_module(module)
    classes = Pass.by_module.get(module, [])
    if len(classes) != 1:
        raise TypeError(f"{module} must hold one Pass, but has {len(classes)}")
    return classes[0]


def _installed_pass(name: str) -> type[Pass] | None:
    """A pass that an installed package declares, imported; None if none does."""
    declared = installed("passes", name)
    if declared is None:
        return None
    _register(declared.load())
    if name not in _loaded:
        raise declared.error("no class in it is a Pass of that name")
    return _loaded[name]


class _Parser:
    """Reads `name`, `name{options}` and `anchor(elements)`, separated by commas."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def parse(self) -> tuple[Element, ...]:
        elements = self._elements() if self.text.strip() else ()
        if self._peek():
            raise self._error(f"unexpected '{self._peek()}'")
        return elements

    def _error(self, message: str) -> PipelineError:
        shown = self.text if len(self.text) <= 200 else self.text[:200] + " ..."
        return PipelineError(f"{message} at column {self.at + 1} of the pipeline '{shown}'")

    def _peek(self) -> str:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1
        return self.text[self.at : self.at + 1]

    def _elements(self) -> tuple[Element, ...]:
        elements = [self._element()]
        while self._peek() == ",":
            self.at += 1
            elements.append(self._element())
        return tuple(elements)

    def _element(self) -> Element:
        self._peek()
        start = self.at
        while self.at < len(self.text) and (
            self.text[self.at].isalnum() or self.text[self.at] in "._-"
        ):
            self.at += 1
        name = self.text[start : self.at]
        if not name:
            raise self._error("expected the name of a pass")
        if self._peek() == "(":
            return self._nested(name)
        options = self._options() if self._peek() == "{" else ""
        own = find_pass(name)
        if own is None and name not in UPSTREAM_PASSES:
            own = _installed_pass(name)
        return Upstream(name, options) if own is None else own.parse(options)

    def _nested(self, anchor: str) -> Nested:
        self.at += 1
        elements = () if self._peek() == ")" else self._elements()
        if self._peek() != ")":
            raise self._error("expected ')'")
        self.at += 1
        return Nested(anchor, elements)

    def _options(self) -> str:
        start, depth, quote = self.at + 1, 0, ""
        while self.at < len(self.text):
            char = self.text[self.at]
            self.at += 1
            if quote:
                quote = "" if char == quote else quote
            elif char in "\"'":
                quote = char
            elif char in "{}":
                depth += 1 if char == "{" else -1
                if depth == 0:
                    return self.text[start : self.at - 1].strip()
        raise self._error("expected '}'")


def _check(nested: Nested) -> None:
    """Lets MLIR check the name, options and anchor of each of its passes."""
    for element in nested.elements:
        if isinstance(element, Nested):
            if element.anchor == ANY and not is_upstream(element):
                raise PipelineError(f"'{element}' must name the ops it is for instead of 'any'")
            _check(element)
        elif isinstance(element, Upstream):
            try:
                passmanager.PassManager.parse(f"{nested.anchor}({element})")
            except ValueError as error:
                raise PipelineError(_explain(element, str(error))) from None


def _explain(element: Upstream, error: str) -> str:
    """Turns the message of MLIR's pipeline parser into one line."""
    if "does not refer to a registered pass" in error:
        known = [*own_passes(), *_loaded, *UPSTREAM_PASSES]
        return f"unknown pass '{element.name}'{among(element.name, known)}"
    if "no such option" in error:
        option = error.partition("no such option")[2].split()[0]
        return f"pass '{element.name}' has no option '{option}'"
    if "restricted to" in error:
        anchor = error.partition("restricted to ")[2].split()[0]
        return f"pass '{element.name}' is for {anchor}; write {anchor[1:-1]}({element})"
    return f"pass '{element.name}' does not accept the options '{element.options}'"
