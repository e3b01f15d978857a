"""How types of MLIR are represented in WGSL."""

from dataclasses import dataclass

from relax_mlir.bindings import ir


@dataclass(frozen=True)
class Kind:
    """A type: values are of the WGSL type `value`, elements of memory have `bytes`.

    `prefix` begins the names of its functions in the library. Elements of less than a word are
    parts of one.
    """

    name: str
    value: str
    bytes: int
    prefix: str

    @property
    def is_float(self) -> bool:
        """Whether it is a float, of any size."""
        return "f" in self.name

    @property
    def bits(self) -> int:
        """Bits of a value."""
        return 32 if self.name == "index" else int(self.name.lstrip("bif"))


_KINDS = {
    kind.name: kind
    for kind in (
        Kind("i1", "bool", 1, "i1"),
        Kind("i8", "i32", 1, "i32"),
        Kind("i16", "i32", 2, "i32"),
        Kind("i32", "i32", 4, "i32"),
        Kind("index", "i32", 4, "index"),
        Kind("i64", "vec2<u32>", 8, "i64"),
        Kind("f16", "u32", 2, "f16"),
        Kind("bf16", "u32", 2, "bf16"),
        Kind("f32", "f32", 4, "f32"),
        Kind("f64", "vec2<u32>", 8, "f64"),
    )
}


def kind_of(type_: ir.Type) -> Kind | None:
    """The representation of a scalar type; None if it has none."""
    return _KINDS.get(str(type_))
