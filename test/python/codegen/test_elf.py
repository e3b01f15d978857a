"""Shared objects made by our linker load, bind and run as those of a system linker do."""

import _ctypes
import ctypes
import struct
import threading

import llvmlite.binding as llvm_binding
import pytest
from small_kernels import NATIVE, load

from relax_mlir.codegen.elf import LinkError, link_shared
from relax_mlir.codegen.elf_data import PLACE
from relax_mlir.codegen.elf_imports import ANDROID, LINUX, SYSTEMS
from relax_mlir.codegen.elf_object import read_object
from relax_mlir.codegen.llvm import Source, compile_llvm, compile_sources
from relax_mlir.runtime import bitcode_path
from relax_mlir.runtime.build import DEVICES
from relax_mlir.target import Target

LEVELS = [0, 3]


def objects(*texts: str, level: int = 3, target: Target = NATIVE) -> list[bytes]:
    return compile_sources([Source(text) for text in texts], target, level)


DATA = """
@counter = global i32 7
@zeros = global [1048576 x i32] zeroinitializer, align 64
@numbers = constant [4 x i32] [i32 1, i32 2, i32 3, i32 4], align 64
@text = private constant [6 x i8] c"hello\\00"
@texts = global [2 x ptr] [ptr @text, ptr getelementptr (i8, ptr @text, i64 1)]
@functions = constant [2 x ptr] [ptr @increment, ptr @labs]
declare i64 @labs(i64)
define i64 @increment(i64 %x) {
  %r = add i64 %x, 1
  ret i64 %r
}
define i32 @bump() {
  %v = load i32, ptr @counter
  %r = add i32 %v, 1
  store i32 %r, ptr @counter
  ret i32 %r
}
define ptr @text_at(i64 %i) {
  %p = getelementptr [2 x ptr], ptr @texts, i64 0, i64 %i
  %r = load ptr, ptr %p
  ret ptr %r
}
define i64 @apply(i64 %i, i64 %x) {
  %p = getelementptr [2 x ptr], ptr @functions, i64 0, i64 %i
  %f = load ptr, ptr %p
  %r = call i64 %f(i64 %x)
  ret i64 %r
}
define i32 @zero_at(i64 %i) {
  %p = getelementptr [1048576 x i32], ptr @zeros, i64 0, i64 %i
  %r = load i32, ptr %p
  store i32 5, ptr %p
  ret i32 %r
}
"""


@pytest.mark.parametrize("level", LEVELS)
def test_data_and_addresses(level: int) -> None:
    names = ["bump", "text_at", "apply", "zero_at", "counter", "numbers"]
    data = link_shared(objects(DATA, level=level), names)
    assert len(data) < 1 << 16  # zeros take no room in the file
    library = load(data)
    library.text_at.restype = ctypes.c_char_p
    library.apply.argtypes = [ctypes.c_int64, ctypes.c_int64]
    library.zero_at.argtypes = [ctypes.c_int64]
    assert (library.bump(), library.bump()) == (8, 9)
    assert ctypes.c_int32.in_dll(library, "counter").value == 9
    assert list((ctypes.c_int32 * 4).in_dll(library, "numbers")) == [1, 2, 3, 4]
    assert ctypes.addressof(ctypes.c_int32.in_dll(library, "numbers")) % 64 == 0
    assert (library.text_at(0), library.text_at(1)) == (b"hello", b"ello")
    assert (library.apply(0, 41), library.apply(1, -5)) == (42, 5)
    assert (library.zero_at(1048575), library.zero_at(1048575)) == (0, 5)
    assert not hasattr(library, "increment")


def test_large_constants() -> None:
    words = ", ".join(f"i32 {i * 7}" for i in range(100_000))
    text = f"@t = private constant [100000 x i32] [{words}]\n"
    text += "define i32 @at(i64 %i) {\n  %p = getelementptr i32, ptr @t, i64 %i\n"
    text += "  %r = load i32, ptr %p\n  ret i32 %r\n}\n"
    library = load(link_shared(objects(text), ["at"]))
    assert [library.at(i) for i in (0, 1, 99_999)] == [0, 7, 699_993]


THREAD_LOCAL = """
@exported = thread_local global i32 10
@own = internal thread_local global i32 0, align 64
define i32 @tick(i32 %by) {
  %a = call ptr @llvm.threadlocal.address.p0(ptr @exported)
  %b = call ptr @llvm.threadlocal.address.p0(ptr @own)
  %x = load i32, ptr %a
  %y = load i32, ptr %b
  %r = add i32 %x, %by
  %s = add i32 %y, 1
  store i32 %r, ptr %a
  store i32 %s, ptr %b
  %t = mul i32 %s, 1000
  %u = add i32 %r, %t
  ret i32 %u
}
define i64 @misalignment() {
  %b = call ptr @llvm.threadlocal.address.p0(ptr @own)
  %i = ptrtoint ptr %b to i64
  %r = and i64 %i, 63
  ret i64 %r
}
"""


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("model", ["", "(localdynamic)", "(initialexec)"])
def test_thread_local_variables(level: int, model: str) -> None:
    text = THREAD_LOCAL.replace("thread_local", "thread_local" + model)
    library = load(link_shared(objects(text, level=level), ["tick", "misalignment"]))
    assert (library.tick(1), library.tick(1)) == (1011, 2012)
    seen: list[int] = []
    thread = threading.Thread(target=lambda: seen.append(library.tick(5)))
    thread.start()
    thread.join()
    assert seen == [1015]
    assert library.tick(1) == 3013
    assert library.misalignment() == 0


def test_initialisers_run_in_order() -> None:
    text = """
    @log = global i32 0
    @llvm.global_ctors = appending global [2 x { i32, ptr, ptr }] [
      { i32, ptr, ptr } { i32 65535, ptr @last, ptr null },
      { i32, ptr, ptr } { i32 101, ptr @first, ptr null }]
    define internal void @first() {
      %v = load i32, ptr @log
      %r = add i32 %v, 3
      store i32 %r, ptr @log
      ret void
    }
    define internal void @last() {
      %v = load i32, ptr @log
      %r = mul i32 %v, 100
      store i32 %r, ptr @log
      ret void
    }
    """
    library = load(link_shared(objects(text), ["log"]))
    assert ctypes.c_int32.in_dll(library, "log").value == 300


def test_imports_from_libc_and_libm() -> None:
    text = """
    @stdout = external global ptr
    declare double @cos(double)
    declare i64 @strlen(ptr)
    define double @f(double %x) { %r = call double @cos(double %x) ret double %r }
    define i64 @n(ptr %s) { %r = call i64 @strlen(ptr %s) ret i64 %r }
    define ptr @out() { %r = load ptr, ptr @stdout ret ptr %r }
    """
    library = load(link_shared(objects(text), ["f", "n", "out"]))
    library.f.restype, library.f.argtypes = ctypes.c_double, [ctypes.c_double]
    library.out.restype = ctypes.c_void_p
    assert library.f(0.0) == 1.0
    assert library.n(b"four") == 4
    assert library.out() == ctypes.c_void_p.in_dll(ctypes.CDLL(None), "stdout").value


def test_absent_weak_symbols_are_null() -> None:
    text = """
    declare extern_weak i32 @surely_not_there()
    define i1 @has() { %r = icmp ne ptr @surely_not_there, null ret i1 %r }
    """
    library = load(link_shared(objects(text), ["has"]))
    library.has.restype = ctypes.c_bool
    assert library.has() is False


def test_strong_definitions_win_over_weak_ones() -> None:
    weak = "define weak i32 @f() { ret i32 1 }\ndefine i32 @g() { %r = call i32 @f() ret i32 %r }"
    strong = "define i32 @f() { ret i32 2 }"
    for pair in ((weak, strong), (strong, weak)):
        library = load(link_shared(objects(*pair), ["f", "g"]))
        assert (library.f(), library.g()) == (2, 2)


def test_common_symbols_are_shared() -> None:
    first = "@c = common global i32 0\ndefine void @set() { store i32 5, ptr @c ret void }"
    second = "@c = common global i32 0\ndefine i32 @get() { %r = load i32, ptr @c ret i32 %r }"
    library = load(link_shared(objects(first, second), ["set", "get"]))
    assert library.get() == 0
    library.set()
    assert library.get() == 5


def test_definitions_bind_inside() -> None:
    """A library that was loaded before does not get the calls of one with the same names."""
    text = "define i32 @value() { ret i32 VALUE }\n"
    text += "define i32 @f() noinline { %r = call i32 @value() ret i32 %r }"
    libraries = [
        load(link_shared(objects(text.replace("VALUE", v), level=0), ["f", "value"]))
        for v in ("1", "2")
    ]
    assert [library.f() for library in libraries] == [1, 2]


def test_the_file_is_deterministic_and_well_formed() -> None:
    built = objects(DATA, THREAD_LOCAL)
    data = link_shared(built, ["bump", "tick"], soname="librelax.so")
    assert data == link_shared(built, ["bump", "tick"], soname="librelax.so")
    assert data[:4] == b"\x7fELF"
    assert b"librelax.so\0" in data
    start, count = struct.unpack_from("<Q", data, 32)[0], struct.unpack_from("<H", data, 56)[0]
    segments = [struct.unpack_from("<IIQQQQQQ", data, start + 56 * i) for i in range(count)]
    for type, flags, offset, address, _, _, _, _ in segments:
        assert offset == address
        assert flags & 3 != 3, "a segment is writable and executable"
        assert type != 1 or offset % 4096 == 0
    assert {1, 2, 7, 0x6474E551, 0x6474E552} == {segment[0] for segment in segments}


def test_empty_variables_have_addresses() -> None:
    text = "@nothing = global [0 x i8] zeroinitializer\n@also = constant [0 x i32] []\n"
    text += "define ptr @at() { ret ptr @nothing }"
    library = load(link_shared(objects(text), ["at", "nothing", "also"]))
    library.at.restype = ctypes.c_void_p
    assert library.at() == ctypes.addressof(ctypes.c_char.in_dll(library, "nothing"))


def test_many_exports_are_found_by_name() -> None:
    text = "".join(f"define i32 @f{i}() {{ ret i32 {i} }}\n" for i in range(500))
    library = load(link_shared(objects(text, level=0), [f"f{i}" for i in range(500)]))
    assert [getattr(library, f"f{i}")() for i in range(500)] == list(range(500))
    assert not hasattr(library, "f500")


def test_no_exports() -> None:
    load(link_shared(objects("define internal void @f() { ret void }"), []))


def test_the_runtime_links_alone() -> None:
    runtime = compile_llvm("", NATIVE, bitcode=bitcode_path(NATIVE.host.arch).read_bytes())
    library = load(link_shared([runtime], ["rx_set_threads", "rx_get_threads"]))
    library.rx_set_threads(3)
    assert library.rx_get_threads() == 3


@pytest.mark.parametrize("name", ["x86-64", "aarch64", "armv7", "riscv64", "aarch64-android"])
def test_the_runtime_imports_known_symbols_only(name: str) -> None:
    target = Target.parse(name)
    bitcode = bitcode_path(target.host.arch, target.host.system).read_bytes()
    runtime = compile_llvm("", target, bitcode=bitcode)
    undefined = {s.name for s in read_object(runtime).symbols if s.name and not s.defined}
    assert undefined
    library_of = SYSTEMS[target.host.system].library_of
    assert {name for name in undefined if library_of(name) is None} == {PLACE}


def test_libraries_of_android() -> None:
    assert ANDROID.library_of("pthread_create") == ANDROID.c_library == "libc.so"
    assert ANDROID.library_of("dl_iterate_phdr") == "libdl.so"
    assert ANDROID.library_of("expf") == "libm.so"
    assert ANDROID.library_of("__errno_location") is None
    assert LINUX.library_of("__errno") is None
    assert LINUX.library_of("dl_iterate_phdr") == "libc.so.6"


def test_android_has_no_variables_of_a_process() -> None:
    """They are ordinary ones, and the module is never unloaded, whose threads may run."""
    built = objects("@once = global i32 1", target=Target.parse("aarch64-android"))
    here, there = (
        link_shared(built, ["once"], unique=["once"], system=system) for system in (LINUX, ANDROID)
    )
    flags = struct.pack("<QQ", 0x6FFFFFFB, 9)
    assert (here[7], there[7]) == (3, 0)
    assert flags not in here
    assert flags in there


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("name", "id"), [("aarch64", 183), ("armv7", 40), ("riscv64", 243)])
def test_objects_for_others_link(name: str, id: int, level: int) -> None:
    """They are not run here: every relocation is known, and the headers are right."""
    target = Target.parse(name)
    runtime = compile_llvm("", target, bitcode=bitcode_path(target.host.arch).read_bytes())
    texts = [DATA, THREAD_LOCAL] if name == "aarch64" else [DATA]
    built = [*objects(*texts, level=level, target=target), runtime]
    data = link_shared(built, ["bump", "apply", "rx_create"])
    assert struct.unpack_from("<H", data, 18)[0] == id


@pytest.mark.parametrize("name", ["armv7", "riscv64"])
def test_thread_local_variables_of_others_are_refused(name: str) -> None:
    """Nothing that is generated has them."""
    with pytest.raises(LinkError, match="not one of position-independent code"):
        link_shared(objects(THREAD_LOCAL, target=Target.parse(name)), ["tick"])


@pytest.mark.parametrize(
    ("texts", "exports", "message"),
    [
        (
            ["declare void @nope_b()\ndeclare void @nope_a()\ndefine void @f() {\n"
             "  call void @nope_b()\n  call void @nope_a()\n  ret void\n}"],
            ["f"],
            "neither defined nor in the C library: nope_a, nope_b$",
        ),
        (["define void @f() { ret void }"] * 2, ["f"], "symbol 'f' is defined twice"),
        (["define void @f() { ret void }"], ["f", "g", "h"], "not defined: g, h"),
        ([], ["f"], r"ELF machines \[\]"),
    ],
)  # fmt: skip
def test_what_cannot_be_linked(texts: list[str], exports: list[str], message: str) -> None:
    with pytest.raises(LinkError, match=message):
        link_shared(objects(*texts), exports)


def test_mixed_machines_are_refused() -> None:
    text = "define void @f() { ret void }"
    pair = [*objects(text), *objects(text, target=Target.parse("aarch64"))]
    with pytest.raises(LinkError, match=r"ELF machines \[62, 183\]"):
        link_shared(pair, ["f"])


def test_code_that_depends_on_its_position_is_refused() -> None:
    llvm_binding.initialize_all_targets()
    llvm_binding.initialize_all_asmprinters()
    target = llvm_binding.Target.from_triple("x86_64-unknown-linux-gnu")
    machine = target.create_target_machine(cpu="x86-64", reloc="static", codemodel="small")
    module = llvm_binding.parse_assembly(
        "@x = internal global [9 x i32] zeroinitializer\n"
        "define i32 @f(i64 %i) {\n  %p = getelementptr i32, ptr @x, i64 %i\n"
        "  %r = load i32, ptr %p\n  ret i32 %r\n}"
    )
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    with pytest.raises(LinkError, match=r"R_X86_64_32S of .* not one of position-independent"):
        link_shared([machine.emit_object(module)], ["f"])


@pytest.mark.parametrize(
    "data", [b"", b"\x7fELF", b"MZ" + bytes(100), b"\x7fELF\x01\x01" + bytes(99)]
)
def test_other_files_are_refused(data: bytes) -> None:
    with pytest.raises(LinkError, match="not little-endian ELF"):
        link_shared([data], [])


def test_shared_objects_are_not_relocatable() -> None:
    data = link_shared(objects("define void @f() { ret void }"), ["f"])
    with pytest.raises(LinkError, match="ELF type 3, but 1"):
        link_shared([data], ["f"])


UNIQUE = """
@once = global i32 5
@holder = constant ptr @once
define i32 @bump() {
  %v = load i32, ptr @once
  %r = add i32 %v, 1
  store i32 %r, ptr @once
  ret i32 %r
}
define ptr @held() {
  %p = load ptr, ptr @holder
  ret ptr %p
}
"""


@pytest.mark.parametrize("level", LEVELS)
def test_a_variable_that_a_process_has_once(level: int) -> None:
    name = f"once_{level}_in_this_process"
    text = UNIQUE.replace("@once", f"@{name}")
    data = link_shared(objects(text, level=level), ["bump", "held", name], unique=[name])
    first, second = load(data), load(data)
    other = load(link_shared(objects(text, level=level), ["bump", name]))
    assert [first.bump(), second.bump(), first.bump(), other.bump()] == [6, 7, 8, 6]
    for library in (first, second):
        library.held.restype = ctypes.c_void_p
        assert library.held() == ctypes.addressof(ctypes.c_int32.in_dll(first, name))
    assert ctypes.c_int32.in_dll(second, name).value == 8
    _ctypes.dlclose(first._handle)  # its variable stays
    assert second.bump() == 9


def test_a_variable_of_a_process_is_read_through_a_slot() -> None:
    text = "@once = hidden global i32 5\ndefine i32 @get() {\n  %v = load i32, ptr @once\n"
    with pytest.raises(LinkError, match="reads 'once' directly, which may lie in another library"):
        link_shared(objects(text + "  ret i32 %v\n}"), ["get", "once"], unique=["once"])


@pytest.mark.parametrize("part", ["device", *DEVICES])
@pytest.mark.parametrize("name", ["x86-64", "aarch64"])
def test_the_runtime_of_devices_imports_known_symbols_only(name: str, part: str) -> None:
    """Or functions and tables of the runtime's other parts, and of the module."""
    target = Target.parse(name)
    bitcode = bitcode_path(target.host.arch, target.host.system, part).read_bytes()
    runtime = compile_llvm("", target, bitcode=bitcode)
    undefined = {s.name for s in read_object(runtime).symbols if s.name and not s.defined}
    library_of = SYSTEMS[target.host.system].library_of
    unknown = {name for name in undefined if library_of(name) is None}
    assert undefined - unknown
    assert all(name.startswith("rx_") for name in unknown)
