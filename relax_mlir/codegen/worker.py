"""The process in which LLVM runs: jobs come in on standard input, objects go out.

LLVM aborts the process on an internal error, and one process compiles one module at a time; so the
compiler starts several of these and reuses them. This file is run by its path and
imports nothing of the compiler, so that a worker is ready in a tenth of a second. It ends when
its input ends, or when no job comes for as many seconds as its argument says.

A job is a pickled dict: text (LLVM IR; may be empty), triple, cpu, features, level (0 to 3), quick
(whether to compile quickly to slower code), bitcode (bytes or None, linked in), assembly (whether
to print it). The answer is a pickled dict: object (bytes, or those of the text), unknown
(intrinsics that this LLVM does not have), seconds; or error (text).
"""

import os
import pickle
import select
import signal
import sys
import time
from typing import Any

if __name__ == "__main__":
    sys.path.pop(0)  # the folder of this file, whose modules must not be imported by bare names

import llvmlite.binding as llvm


def compile_job(job: dict[str, Any]) -> dict[str, Any]:
    """Compiles the LLVM IR of a job; RuntimeError if it does not parse."""
    start = time.perf_counter()
    machine = llvm.Target.from_triple(job["triple"]).create_target_machine(
        cpu=job["cpu"],
        features=job["features"],
        opt=0 if job["quick"] else job["level"],
        reloc="static" if job["triple"].startswith("wasm") else "pic",
        codemodel="small",
    )
    module = _in_machine(llvm.parse_assembly(job["text"]), job["triple"], machine)
    if job["bitcode"]:
        module.link_in(_in_machine(llvm.parse_bitcode(job["bitcode"]), job["triple"], machine))
    module.verify()
    if job["text"]:  # bitcode is optimised already
        _optimise(module, machine, min(job["level"], 1) if job["quick"] else job["level"])
    intrinsics = [f.name for f in module.functions if f.is_declaration and "llvm." in f.name]
    is_text = job["assembly"]
    data = machine.emit_assembly(module).encode() if is_text else machine.emit_object(module)
    # LLVM treats an unknown intrinsic as a call of a function of that name, not as an error.
    unknown = [name for name in intrinsics if name.encode() in data]
    return {"object": data, "unknown": unknown, "seconds": time.perf_counter() - start}


def _optimise(module: Any, machine: Any, level: int) -> None:
    options = llvm.create_pipeline_tuning_options(speed_level=level)
    options.loop_vectorization = level > 1
    # Schedules unroll for CPUs; there LLVM's unrolling takes an eighth of the time for nothing.
    options.loop_unrolling = machine.triple.startswith("nvptx")
    options.slp_vectorization = False  # kernels are vectorised; it takes a tenth of the time
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)


def _in_machine(module: Any, triple: str, machine: Any) -> Any:
    module.triple, module.data_layout = triple, str(machine.target_data)
    return module


def serve(idle_seconds: float) -> None:
    """Answers jobs until the input ends or is idle for too long."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # other output must not mix with the answers
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    while select.select([sys.stdin], [], [], idle_seconds)[0]:
        try:
            job = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            answer = compile_job(job)
        except RuntimeError as error:
            answer = {"error": str(error)}
        pickle.dump(answer, answers, protocol=pickle.HIGHEST_PROTOCOL)
        answers.flush()


if __name__ == "__main__":
    serve(float(sys.argv[1]))
