"""Functions are exported, hidden or internal by who names them."""

import re

from small_kernels import load

from relax_mlir.codegen.elf import link_shared
from relax_mlir.codegen.elf_object import GLOBAL, read_object
from relax_mlir.codegen.linkage import with_linkage
from relax_mlir.codegen.llvm import Source, compile_sources
from relax_mlir.target import Target

TEXT = """; ModuleID = 'm'
source_filename = "m"

@table = private unnamed_addr constant [2 x i32] [i32 3, i32 4]
@shared = internal constant [2 x ptr] [ptr @table, ptr @"odd name"]
@counter = internal global i32 10
@slot = global ptr null

declare ptr @malloc(i64)

; Function Attrs: nounwind
define i32 @main(i32 %0) #0 {
  %2 = call i32 @kernel(i32 %0)
  %3 = call i32 @"odd name"(i32 %2)
  ret i32 %3
}

define i32 @kernel(i32 %0) #0 {
  %2 = call i32 @helper(i32 %0)
  ret i32 %2
}

define internal i32 @helper(i32 %0) {
  %p = getelementptr i32, ptr @table, i32 1
  %v = load i32, ptr %p, align 4
  %r = add i32 %v, %0
  ret i32 %r
}

define private i32 @"odd name"(i32 %0) {
  %p = load ptr, ptr @shared, align 8
  %v = load i32, ptr %p, align 4
  %r = mul i32 %v, %0
  ret i32 %r
}

define i32 @bump() {
  %v = load i32, ptr @counter, align 4
  %r = add i32 %v, 1
  store i32 %r, ptr @counter, align 4
  ret i32 %r
}

define i32 @unrelated() {
  ret i32 9
}

attributes #0 = { nounwind "prefer-vector-width"="512" }
"""


def test_what_is_exported_works_and_the_rest_does_not_show() -> None:
    exports = ["main", "bump", "slot"]
    target = Target.parse("native")
    (object_,) = compile_sources([Source(with_linkage(TEXT, (), exports))], target)
    shown = {s.name for s in read_object(object_).symbols if s.binding == GLOBAL and s.defined}
    assert shown == set(exports)
    library = load(link_shared([object_], exports))
    assert library.main(6) == (6 + 4) * 3
    assert (library.bump(), library.bump()) == (11, 12)


def test_parts_call_what_others_define() -> None:
    first = TEXT.replace("define i32 @unrelated() {\n  ret i32 9\n}", "declare i32 @unrelated()")
    first = first.replace("ret i32 %3\n", "%4 = call i32 @unrelated()\n  ret i32 %4\n", 1)
    second = "define private i32 @unrelated() {\n  ret i32 9\n}\n"
    parts = [with_linkage(first, (), ["main"]), with_linkage(second, ["unrelated"])]
    objects = compile_sources(list(map(Source, parts)), Target.parse("native"))
    assert load(link_shared(objects, ["main"])).main(6) == 9


def test_one_part_keeps_exports_and_hides_the_rest() -> None:
    whole = with_linkage(TEXT, ["kernel"], ["main"])
    assert "define i32 @main(" in whole
    assert "define hidden i32 @kernel(" in whole
    assert re.findall(r"^define internal \S+ (@.*?)\(", whole, re.MULTILINE) == [
        "@helper",
        '@"odd name"',
        "@bump",
        "@unrelated",
    ]
    assert "@counter = " in whole
    assert "declare ptr @malloc(i64)" in whole
