"""Declarations of the C runtime for host code; see `runtime/csrc/relax_runtime.h`."""

from relax_mlir.bindings import func, ir

_POINTER = "!llvm.ptr"
_SIGNATURES = {
    "rx_bind": f"({_POINTER}, {_POINTER}, {_POINTER}, i32, i32, {_POINTER}) -> i32",
    "rx_check_vectors": f"({_POINTER}, i64, i64) -> i32",
    "rx_arena": f"({_POINTER}, i64) -> {_POINTER}",
    "rx_arena_mark": f"({_POINTER}) -> {_POINTER}",
    "rx_arena_release": f"({_POINTER}, {_POINTER}) -> ()",
    "rx_keep": f"({_POINTER}, i32, {_POINTER}, i64) -> {_POINTER}",
    "rx_result": f"({_POINTER}, {_POINTER}, i32, i32, i32, i32, {_POINTER}) -> {_POINTER}",
    "rx_host_result": f"({_POINTER}, {_POINTER}, i32, i32, i32, i32, {_POINTER}) -> {_POINTER}",
    "rx_result_alias": f"({_POINTER}, {_POINTER}, i32, {_POINTER}) -> i32",
    "rx_match_cast": f"({_POINTER}, {_POINTER}, {_POINTER}, {_POINTER}) -> i32",
    "rx_require": f"({_POINTER}, {_POINTER}, {_POINTER}) -> i32",
    "rx_refuse_sizes": f"({_POINTER}, {_POINTER}, {_POINTER}) -> ()",
    "rx_refuse_index": f"({_POINTER}, {_POINTER}, i64, i32, i64) -> ()",
    "rx_poll": f"({_POINTER}, i32) -> i32",
    "rx_enter": f"({_POINTER}, {_POINTER}) -> i32",
    "rx_leave": f"({_POINTER}) -> ()",
    "rx_call_library": f"({_POINTER}, {_POINTER}, {_POINTER}, {_POINTER}) -> i32",
    "rx_im2col_sgemm": f"({', '.join([_POINTER] * 6)}) -> ()",
    "rx_print": f"({_POINTER}, {_POINTER}, {_POINTER}, {_POINTER}) -> i32",
    "rx_refuse": f"({_POINTER}, {_POINTER}, {_POINTER}, {_POINTER}) -> ()",
    "rx_fail": f"({_POINTER}, {_POINTER}) -> i32",
    "rx_launch": f"(i32, i64, i64, i64, {_POINTER}) -> ()",
    "rx_device_constant": f"(i32) -> {_POINTER}",
    "rx_device_move": f"({_POINTER}, {_POINTER}, i32, {_POINTER}, i32, i64) -> i32",
    "rx_device_read": f"({_POINTER}, i32, {_POINTER}, i64) -> {_POINTER}",
    "rx_device_product": f"({_POINTER}, i32, {_POINTER}) -> i32",
    "rx_device_scratch": f"(i32, i64) -> {_POINTER}",
    "rx_device_scratch_free": f"(i32, {_POINTER}) -> ()",
    "rx_placed_arena": f"({_POINTER}, i32, i64) -> {_POINTER}",
    "rx_placed_arena_mark": f"({_POINTER}, i32) -> {_POINTER}",
    "rx_placed_arena_release": f"({_POINTER}, i32, {_POINTER}) -> ()",
    "rx_count_kernels": "(i64) -> ()",
    "rx_span_begin": "(i32) -> ()",
    "rx_span_end": "() -> ()",
}


class Runtime:
    """Declares the runtime functions that a module calls."""

    def __init__(self, block: ir.Block) -> None:
        self._block = block
        self._results: dict[str, list[ir.Type]] = {}

    def results(self, name: str) -> list[ir.Type]:
        """The result types of a function; declares it."""
        if name not in self._results:
            type_ = ir.FunctionType(ir.Type.parse(_SIGNATURES[name]))
            func.FuncOp(name, type_, visibility="private", ip=ir.InsertionPoint(self._block))
            self._results[name] = list(type_.results)
        return self._results[name]
