"""Models of other frameworks, interpreted instead of compiled."""

from collections.abc import Callable
from typing import Any

from relax_mlir.interpreter import interpret
from relax_mlir.source import Imported


def interpreted(imported: Imported) -> Callable[..., Any]:
    """A function of the inputs of a model, as that of `compile(imported)["main"]`."""
    main = interpret(imported.module)["main"]
    names = [argument.name for argument in main.arguments]

    def call(*inputs: Any) -> Any:
        values = {**imported.parameters, **dict(zip(imported.inputs, inputs, strict=True))}
        return main(*(values[name] for name in names))

    return call
