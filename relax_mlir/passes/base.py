"""The base class of passes: a pass is a frozen dataclass whose fields are its options.

The pass `relax-fuse-ops` is the one `Pass` of the module `relax_mlir.transforms.fuse_ops`.
Nothing is registered by hand. A field is an option, spelt with hyphens in a pipeline:

    field                            text
    max_size: int = 8                relax-fuse-ops{max-size=4}
    names: tuple[str, ...] = ()      relax-fuse-ops{names=a,b}
    verbose: bool = False            relax-fuse-ops{verbose}  or  {verbose=true}
    title: str = ""                  relax-fuse-ops{title="two words"}
    share: float = 0.5               relax-fuse-ops{share=0.25}
    target: Target = field(...)      relax-fuse-ops{target=x86-64-v3}, by `Target.parse` and `str`
"""

import re
from collections.abc import Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any, ClassVar, TypeAlias, get_args, get_origin, get_type_hints

from relax_mlir.bindings import ir
from relax_mlir.diagnostics import Diagnostic
from relax_mlir.errors import PipelineError, UsageError
from relax_mlir.passes.names import among, pass_name

Anchor: TypeAlias = ir.Operation | ir.OpView | ir.Value | ir.Location
_OPTION = re.compile(r"""\s*([\w-]+)(?:=("[^"]*"|'[^']*'|\{[^{}]*\}|[^\s{}"']*))?(?=\s|$)""")
_PLAIN = re.compile(r"[\w.,:/+@*=-]+\Z")
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}
_KINDS = {int: "an integer", float: "a number", bool: "true or false", str: "a text"}


class PassFailure(Exception):
    """Raised in a pass on IR that it does not support; becomes a located diagnostic.

    `anchor` is the op (the message then starts with `'<op>' op`), a value, or a location; `notes`
    are (anchor, message) pairs, which are attached to the error.
    """

    def __init__(
        self, anchor: Anchor, message: str, notes: Sequence[tuple[Anchor, str]] = ()
    ) -> None:
        super().__init__(message)
        self.diagnostic = _diagnostic(
            anchor, "error", message, [_diagnostic(at, "note", text) for at, text in notes]
        )


def _diagnostic(
    anchor: Anchor, severity: str, message: str, notes: Sequence[Diagnostic] = ()
) -> Diagnostic:
    """Copies location and text, so that the diagnostic outlives the op."""
    location = anchor if isinstance(anchor, ir.Location) else anchor.location
    if isinstance(anchor, ir.Operation | ir.OpView) and severity == "error":
        prefix = f"'{anchor.operation.name}' op "
        message = message if message.startswith(prefix) else prefix + message
    return Diagnostic.at(location, severity, message, notes)


@dataclass(frozen=True)
class Pass:
    """An in-place transformation of one op, by default a module.

    A subclass is a frozen dataclass in its own file under `transforms/`; the first line of its
    docstring is its description. Valid IR in, valid IR out. It fails by raising `PassFailure`, or
    by emitting errors (`op.location.emit_error`) and returning.
    """

    by_module: ClassVar[dict[str, list[type["Pass"]]]] = {}
    needs_verified: ClassVar[bool] = False
    """Whether the pass relies on the rules of the dialects; then `relax-verify` runs before it."""
    keeps_verified: ClassVar[bool] = True
    """Whether the rules hold after the pass if they held before."""
    takes_tuples: ClassVar[bool] = False
    """Whether modules may have tuples; else `relax-flatten-tuples` runs before it."""

    def __init_subclass__(cls) -> None:
        Pass.by_module.setdefault(cls.__module__, []).append(cls)

    def run(self, op: ir.Operation) -> None:
        """Transforms `op`, the anchor of the pipeline."""
        raise TypeError(f"{type(self).__name__} does not implement run")

    def modules(self) -> set[str]:
        """The Python modules on which the result depends, apart from what they import."""
        return {type(self).__module__}

    def registered(self) -> list[str]:
        """What modules have registered that the result depends on, but for functions of Python."""
        return []

    @classmethod
    def name(cls) -> str:
        """The pass's name in a pipeline."""
        return pass_name(cls.__module__, cls.__name__)

    @classmethod
    def parse(cls, options: str) -> "Pass":
        """Builds the pass from the text between the braces.

        Raises PipelineError on an unknown option, a value of the wrong kind, or a missing option.
        """
        types = get_type_hints(cls)
        known = {field.name.replace("_", "-"): field for field in fields(cls)}
        given: dict[str, Any] = {}
        for key, text in _split_options(cls.name(), options):
            if key not in known:
                raise PipelineError(f"pass '{cls.name()}' has no option '{key}'{among(key, known)}")
            field = known[key]
            given[field.name] = _parse_value(cls.name(), key, types[field.name], text)
        for key, field in known.items():
            required = field.default is MISSING and field.default_factory is MISSING
            if required and field.name not in given:
                raise PipelineError(f"pass '{cls.name()}' needs the option '{key}'")
        try:
            return cls(**given)
        except (UsageError, ValueError) as error:
            raise PipelineError(f"pass '{cls.name()}': {error}") from None

    def __str__(self) -> str:
        """The text that `parse` reads: the name, and the options that are not the default."""
        options = [
            f"{field.name.replace('_', '-')}={_print_value(getattr(self, field.name))}"
            for field in fields(self)
            if getattr(self, field.name) != _default(field)
        ]
        return self.name() + ("{" + " ".join(options) + "}" if options else "")


def _default(field: Any) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()


def _split_options(name: str, text: str) -> list[tuple[str, str | None]]:
    options, end = [], 0
    while text[end:].strip():
        match = _OPTION.match(text, end)
        if match is None:
            raise PipelineError(f"pass '{name}': cannot read its options at '{text[end:].strip()}'")
        value = match[2]
        if value and value[0] in "\"'{":
            value = value[1:-1]
        options.append((match[1], value))
        end = match.end()
    return options


def _parse_value(name: str, key: str, kind: Any, text: str | None) -> Any:
    if get_origin(kind) is tuple:
        element = get_args(kind)[0]
        parts = [part.strip() for part in (text or "").split(",")] if (text or "").strip() else []
        return tuple(_parse_value(name, key, element, part) for part in parts)
    try:
        if kind is bool:
            return True if text is None else _BOOLEANS[text]
        if text is None:
            raise ValueError
        return kind.parse(text) if hasattr(kind, "parse") else kind(text)
    except (ValueError, KeyError):
        got = "nothing" if text is None else f"'{text}'"
        wanted = _KINDS.get(kind) or f"a {kind.__name__.lower()}"
        raise PipelineError(f"option '{key}' of pass '{name}' is {wanted}, but got {got}") from None


def _print_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    text = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return text if _PLAIN.match(text) else f"'{text}'" if '"' in text else f'"{text}"'
