"""Workers compile, refuse and survive what LLVM does not."""

import os
import threading
from pathlib import Path

import pytest
from small_kernels import load

from relax_mlir.codegen import llvm
from relax_mlir.codegen.elf import link_shared
from relax_mlir.codegen.llvm import Source, compile_llvm, compile_sources, to_llvm_22
from relax_mlir.errors import CompileError
from relax_mlir.target import Target

NATIVE = Target.parse("native")
GOOD = "define i32 @f() {\n  ret i32 42\n}\n"
ABORT = """
declare <16 x float> @llvm.x86.avx512.vfmadd.ps.512(<16 x float>, <16 x float>, <16 x float>, i32)
define <16 x float> @needs_avx512(<16 x float> %a) {
  %r = call <16 x float> @llvm.x86.avx512.vfmadd.ps.512(
    <16 x float> %a, <16 x float> %a, <16 x float> %a, i32 8)
  ret <16 x float> %r
}
"""


def test_the_object_runs() -> None:
    assert load(link_shared([compile_llvm(GOOD, NATIVE)], ["f"])).f() == 42


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_objects_do_not_change_from_run_to_run(level: int) -> None:
    assert compile_llvm(GOOD, NATIVE, level) == compile_llvm(GOOD, NATIVE, level)


def loop(said: str = "") -> str:
    """A loop of known length, with what is said of repeating its body."""
    annotation = ", !llvm.loop !0" if said else ""
    return f"""
define void @f(ptr %p) {{
entry:
  br label %body
body:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  store volatile i64 %i, ptr %p
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, 24
  br i1 %more, label %body, label %end{annotation}
end:
  ret void
}}
!0 = distinct !{{!0, !1}}
!1 = !{{{said}}}
"""


def test_loops_are_repeated_as_often_as_they_say() -> None:
    once = compile_llvm(loop('!"llvm.loop.unroll.disable"'), NATIVE)
    assert compile_llvm(loop(), NATIVE) == once
    assert len(compile_llvm(loop('!"llvm.loop.unroll.count", i32 6'), NATIVE)) > len(once)


def test_when_llvm_stops_the_next_module_compiles() -> None:
    with pytest.raises(CompileError, match=r"'needs_avx512' for x86-64: .*LLVM ERROR"):
        compile_llvm(ABORT, Target.parse("x86-64"))
    assert compile_llvm(GOOD, NATIVE)


def test_one_of_several_fails() -> None:
    with pytest.raises(CompileError, match="needs_avx512"):
        compile_sources([Source(GOOD), Source(ABORT), Source(GOOD)], Target.parse("x86-64"))


def test_wrong_text_is_refused() -> None:
    with pytest.raises(CompileError, match=r"(?s)compile 'g' for native: .*expected value token"):
        compile_llvm("define i32 @g() {\n  ret i31x 0\n}\n", NATIVE)


def test_unknown_intrinsic_is_named() -> None:
    text = "declare i32 @llvm.nosuch.i32()\ndefine i32 @f() {\n"
    text += "  %1 = call i32 @llvm.nosuch.i32()\n  ret i32 %1\n}\n"
    with pytest.raises(CompileError, match=r"intrinsic 'llvm.nosuch.i32', used in 'f', on native"):
        compile_llvm(text, NATIVE)


def test_many_modules_keep_their_order() -> None:
    texts = [GOOD.replace("42", str(i)).replace("@f", f"@f{i}") for i in range(7)]
    objects = compile_sources([Source(text) for text in texts], NATIVE)
    library = load(link_shared(objects, [f"f{i}" for i in range(7)]))
    assert [getattr(library, f"f{i}")() for i in range(7)] == list(range(7))
    assert compile_sources([], NATIVE) == []


def test_workers_that_left_are_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llvm, "IDLE_SECONDS", 0.01)
    pool = llvm._Pool()
    monkeypatch.setattr(llvm, "_current", [pool])
    for _ in range(3):
        assert compile_llvm(GOOD, NATIVE)
        for worker in pool.idle:
            assert worker.process.wait(timeout=30) == 0
    pool.close()


GARBAGE = "import sys, time; sys.stdout.buffer.write({!r}); sys.stdout.flush(); {}"
ENDLESS = "time.sleep(99)"
KILLED = "import os; os.kill(os.getpid(), 9)"


@pytest.mark.parametrize(
    ("data", "then", "message"),
    [
        (b"hello, this is no pickle\n", ENDLESS, "did not answer as expected: "),
        (b"\x80\x05garbage.\n", ENDLESS, "did not answer as expected: "),
        (b"\x80\x05\x95\xff\x00\x00\x00\x00\x00\x00\x00}", KILLED, "stopped with status -9"),
        (b"\x80\x05\x95\xff\x00\x00", ENDLESS, "did not answer as expected: TimeoutError"),
        (b"", KILLED, "stopped with status -9: no message"),
        (b"", "sys.exit(0)", "3 processes in a row stopped without an answer"),
        (b"", "raise MemoryError('too much')", "stopped with status 1: MemoryError: too much"),
    ],
)
def test_workers_that_fail(
    data: bytes, then: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "worker.py").write_text(GARBAGE.format(data, then))
    pool = llvm._Pool()
    with monkeypatch.context() as patch:
        patch.setattr(llvm, "EXIT_SECONDS", 0.3)
        patch.setattr(llvm, "PIPE_SECONDS", 0.3)
        patch.setattr(llvm, "_current", [pool])
        patch.setattr(llvm, "_WORKER", tmp_path / "worker.py")
        with pytest.raises(CompileError, match=f"cannot compile 'f' for native: .*{message}"):
            compile_llvm(GOOD, NATIVE)
    assert pool.idle == []
    assert compile_llvm(GOOD, NATIVE)


def test_a_worker_that_reads_no_job_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "worker.py").write_text("import time; time.sleep(99)")
    monkeypatch.setattr(llvm, "EXIT_SECONDS", 0.1)
    monkeypatch.setattr(llvm, "PIPE_SECONDS", 0.3)
    monkeypatch.setattr(llvm, "_current", [llvm._Pool()])
    monkeypatch.setattr(llvm, "_WORKER", tmp_path / "worker.py")
    with pytest.raises(CompileError, match=r"'f' for native: .*TimeoutError"):
        compile_llvm(GOOD + "; " + "x" * (1 << 20), NATIVE)


def test_an_answer_may_take_longer_than_its_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llvm, "PIPE_SECONDS", 0.02)  # a worker takes longer to start
    pool = llvm._Pool()
    monkeypatch.setattr(llvm, "_current", [pool])
    assert compile_llvm(GOOD, NATIVE)
    pool.close()


def test_threads_share_the_workers() -> None:
    results: list[bytes] = []
    threads = [
        threading.Thread(target=lambda: results.append(compile_llvm(GOOD, NATIVE)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4
    assert len(set(results)) == 1


def test_a_forked_child_has_workers_of_its_own() -> None:
    expected = compile_llvm(GOOD, NATIVE)
    child = os.fork()
    if child == 0:
        os._exit(0 if compile_llvm(GOOD, NATIVE) == expected else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert compile_llvm(GOOD, NATIVE) == expected


def test_words_that_llvm_22_does_not_have() -> None:
    text = "attributes #0 = { nocallback nocreateundeforpoison nofree }\n"
    assert to_llvm_22(text, NATIVE) == "attributes #0 = { nocallback nofree }\n"
    text = "attributes #0 = { denormal_fpenv(preservesign|preservesign, float: ieee) }"
    assert (
        to_llvm_22(text, NATIVE)
        == 'attributes #0 = { "denormal-fp-math"="preserve-sign,preserve-sign" }'
    )
