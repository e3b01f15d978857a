"""The linker of modules for WebAssembly: what is in a module, and what it refuses."""

import numpy as np
import pytest
import wasmtime

from relax_mlir.codegen.elf_object import LinkError
from relax_mlir.codegen.llvm import compile_llvm
from relax_mlir.codegen.wasm import encoding, link_module, public_functions
from relax_mlir.data import Contents
from relax_mlir.target import Target

WASM = Target.parse("wasm32")
MAIN = """
@table = private constant [2 x ptr] [ptr @twice, ptr @other]
@text = private constant [4 x i8] c"abc\\00"
declare i32 @other(i32)
define internal i32 @twice(i32 %x) {
  %y = add i32 %x, %x
  ret i32 %y
}
define internal i32 @unused(i32 %x) {
  %y = mul i32 %x, 77
  ret i32 %y
}
define i32 @rx_fn_main(i32 %which, i32 %x) {
  %at = getelementptr ptr, ptr @table, i32 %which
  %f = load ptr, ptr %at
  %y = call i32 %f(i32 %x)
  ret i32 %y
}
define ptr @text_of(i32 %i) {
  %at = getelementptr i8, ptr @text, i32 %i
  ret ptr %at
}
"""
OTHER = """
@count = internal global i32 40
define hidden i32 @other(i32 %x) {
  %old = load i32, ptr @count
  %new = add i32 %old, %x
  store i32 %new, ptr @count
  ret i32 %new
}
"""


def linked(*texts: str, exports: "list[str]", constants=None) -> bytes:
    parts = [compile_llvm(text, WASM) for text in texts]
    return b"".join(link_module(parts, exports, constants or {}))


def instance(data: bytes):
    """Calls of an instance by names, and its other exports."""
    store = wasmtime.Store()
    module = wasmtime.Module(store.engine, data)
    exports = wasmtime.Instance(store, module, []).exports(store)
    return store, exports


def test_functions_tables_and_data_of_several_objects() -> None:
    store, exports = instance(linked(MAIN, OTHER, exports=["rx_fn_main", "text_of"]))
    main = exports["rx_fn_main"]
    assert [main(store, 0, 21), main(store, 1, 2), main(store, 1, 1)] == [42, 42, 43]
    text = exports["text_of"](store, 1)
    assert exports["memory"].read(store, text, text + 2) == b"bc"
    assert exports["rx_entry_main"].value(store) > 0
    with pytest.raises(wasmtime.Trap):
        main(store, 1 << 20, 1)


def test_what_nothing_reaches_is_left_out() -> None:
    data = linked(MAIN.replace("internal i32 @unused", "i32 @unused"), exports=["text_of"])
    assert b"abc" in data
    assert encoding.signed(77) not in data[data.index(b"text_of") :]
    whole = linked(
        MAIN.replace("internal i32 @unused", "i32 @unused"), exports=["text_of", "unused"]
    )
    assert len(whole) > len(data)


def test_public_functions() -> None:
    assert public_functions(compile_llvm(MAIN, WASM)) == ["rx_fn_main", "text_of"]
    assert public_functions(compile_llvm(OTHER, WASM)) == []


def splat(element: float, count: int) -> np.ndarray:
    """The bytes of an element, repeated."""
    data = np.array([element], np.float32).view(np.uint8)
    return np.broadcast_to(data, (count, 4))


def test_constants() -> None:
    text = """
    @rx_data = external constant [0 x i8]
    @zeros = external constant [0 x i8]
    define float @get(i32 %i) {
      %at = getelementptr float, ptr @rx_data, i32 %i
      %x = load float, ptr %at
      %zero = getelementptr float, ptr @zeros, i32 %i
      %y = load float, ptr %zero
      %z = fadd float %x, %y
      ret float %z
    }"""
    values = np.arange(1000, dtype=np.float32)
    constants = {
        "rx_data": Contents(values[::-1], "f32", (1000,)),
        "zeros": Contents(splat(0, 1000), "f32", (1000,)),
        "unused": Contents(np.ones(1 << 20, np.float32), "f32", (1 << 20,)),
    }
    data = linked(text, exports=["get"], constants=constants)
    store, exports = instance(data)
    assert [exports["get"](store, i) for i in (0, 1, 999)] == [999, 998, 0]
    assert 4000 < len(data) < 8000


@pytest.mark.parametrize(
    ("texts", "exports", "message"),
    [
        ([MAIN], ["rx_fn_main"], "a reference to 'other' is to nothing that is defined"),
        ([MAIN, OTHER, OTHER], ["rx_fn_main"], "'other' is defined twice"),
        ([OTHER], ["missing"], "exports are not defined: missing"),
        (
            [MAIN, OTHER.replace("i32 @other(i32 %x)", "i32 @other(i32 %x, i64 %y)")],
            ["rx_fn_main"],
            "'other' is called as a function of another type",
        ),
    ],
)
def test_what_cannot_be_linked(texts: "list[str]", exports: "list[str]", message: str) -> None:
    with pytest.raises(LinkError, match=message):
        linked(*texts, exports=exports)


def test_objects_of_other_machines_are_refused() -> None:
    data = compile_llvm("define void @f() { ret void }", Target.parse("x86-64"))
    with pytest.raises(LinkError, match="an object is not for WebAssembly"):
        link_module([data], ["f"], {})


def test_data_beyond_the_memory_are_refused() -> None:
    text = """
    @large = external constant [0 x i8]
    define ptr @get() {
      ret ptr @large
    }"""
    large = Contents(splat(1, 1 << 30), "f32", (1 << 30,))
    with pytest.raises(LinkError, match="but the memory of a module has 2"):
        linked(text, exports=["get"], constants={"large": large})


@pytest.mark.parametrize("value", [0, 1, 63, 64, 127, 128, 300, 2**31 - 1, 2**32 - 1, 2**40])
def test_integers(value: int) -> None:
    for width in (0, 5):
        assert encoding.Reader(encoding.unsigned(value, width)).unsigned() == value
        for signed in (value, -value, -value - 1):
            assert encoding.Reader(encoding.signed(signed, width)).signed() == signed
