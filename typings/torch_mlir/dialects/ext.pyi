from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from torch_mlir import ir  # noqa: TID251

Operand: Any
Result: Any
Region: Any

def __getattr__(name: str) -> Any: ...

class _Declared(type):
    # What the bindings generate from a declaration: `get`, `OPERATION_NAME`, ...
    def __getattr__(cls, name: str) -> Any: ...

class _Member(metaclass=_Declared):
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def __getattr__(self, name: str) -> Any: ...

class Dialect(metaclass=_Declared):
    _emit_module: ClassVar[Callable[[], Any]]
    _mlir_module: ClassVar[Any]

    def __init_subclass__(cls, *, name: str) -> None: ...

    class Attribute(_Member, ir.Attribute):
        def __init_subclass__(cls, *, name: str) -> None: ...

    class Type(_Member, ir.Type):
        def __init_subclass__(cls, *, name: str) -> None: ...

    class Operation(_Member, ir.OpView):
        def __init_subclass__(
            cls, *, name: str | None = None, traits: Sequence[type] = ()
        ) -> None: ...
