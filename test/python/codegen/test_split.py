"""Parts of LLVM IR that compile apart mean what the whole means."""

import re

from small_kernels import load

from relax_mlir.codegen.elf import link_shared
from relax_mlir.codegen.llvm import Source, compile_sources
from relax_mlir.codegen.split import split_module, with_linkage
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


def defined(part: str) -> list[str]:
    return re.findall(r'^define .*?@("[^"]*"|\w+)', part, re.MULTILINE)


def test_exports_and_written_data_are_first_and_callers_stay_with_callees() -> None:
    parts = split_module(TEXT, ["main"])
    assert [defined(part) for part in parts] == [
        ["main", "bump"],
        ["kernel", "helper"],
        ['"odd name"'],
        ["unrelated"],
    ]
    assert "declare hidden i32 @kernel(i32 %0)\n" in parts[0]
    assert "@counter" in parts[0]
    assert "@slot" in parts[0]
    assert all("@slot" not in part and "@counter" not in part for part in parts[1:])
    assert "define hidden i32 @kernel" in parts[1]
    assert "define internal i32 @helper" in parts[1]
    assert "@table = private" in parts[1]
    assert "@shared" in parts[2]
    assert "@table" in parts[2]
    assert "@malloc" not in "".join(parts)


def test_parts_link_to_the_whole() -> None:
    target = Target.parse("native")
    exports = ["main", "bump", "slot"]
    objects = compile_sources([Source(part) for part in split_module(TEXT, exports)], target)
    library = load(link_shared(objects, exports))
    assert library.main(6) == (6 + 4) * 3
    assert (library.bump(), library.bump()) == (11, 12)


def test_a_part_does_not_depend_on_the_others() -> None:
    alone = split_module(TEXT, ["main"])[3]
    changed = TEXT.replace("ret i32 %3", "ret i32 %2").replace("i32 9", "i32 9")
    assert split_module(changed, ["main"])[3] == alone
    assert split_module(changed, ["main"])[0] != split_module(TEXT, ["main"])[0]


def test_nothing_exported() -> None:
    assert [defined(part) for part in split_module("define void @f() {\n  ret void\n}\n", [])] == [
        ["f"]
    ]
    assert split_module("", []) == []


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
