"""Runs the tools of the FileCheck tests in a process that has imported everything already.

    python resident.py serve SOCKET          serves until its standard input ends
    python resident.py call SOCKET TOOL ...  runs a tool there, as if it ran here

Importing MLIR and our passes takes longer than most tests. The server forks for each command, so
that tools share nothing but what was imported; the client lends it its standard streams.
"""

import array
import json
import os
import socket
import sys
from collections.abc import Sequence

CRASHED = 139
"""Exit status of a tool that ended without one."""


def start(environment: dict[str, str]) -> str:
    """The socket of a new server, which ends with this process; RuntimeError if it cannot start."""
    import atexit
    import shutil
    import subprocess
    import tempfile
    import time

    path = os.path.join(tempfile.mkdtemp(prefix="resident-"), "socket")
    atexit.register(shutil.rmtree, os.path.dirname(path))
    command = [sys.executable, os.path.abspath(__file__), "serve", path]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment)
    while not os.path.exists(path):
        if server.poll() is not None:
            raise RuntimeError("the process that runs the tools could not be started")
        time.sleep(0.02)
    atexit.register(server.stdin.close)  # which ends it, as does the end of this process
    return path


def call(
    path: str, argv: list[str], streams: Sequence[int] = (0, 1, 2), cwd: str | None = None
) -> int:
    """Has the server at the socket run a tool on three open files; returns its exit status."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        job = {"argv": argv, "cwd": cwd or os.getcwd(), "env": dict(os.environ)}
        request = json.dumps(job).encode()
        lent = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", streams))
        connection.sendmsg([len(request).to_bytes(4, "little")], [lent])
        connection.sendall(request)
        answer = connection.recv(4)
    return int.from_bytes(answer, "little") if answer else CRASHED


def serve(path: str) -> None:
    """Answers calls until standard input ends."""
    import selectors

    tools = _tools()
    with socket.socket(socket.AF_UNIX) as listener, selectors.DefaultSelector() as events:
        listener.bind(f"{path}.new")
        listener.listen(64)
        os.rename(f"{path}.new", path)  # a client that sees it may connect
        events.register(sys.stdin, selectors.EVENT_READ)
        events.register(listener, selectors.EVENT_READ)
        while not any(key.fileobj is sys.stdin for key, _ in events.select()):
            connection, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                _run(connection, tools)
            connection.close()
            _reap()


def _tools() -> dict:
    """The tools by name: functions of a command line that return an exit status."""
    from importlib import import_module

    import filecheck.main

    from relax_mlir import dialects
    from relax_mlir.passes.names import own_passes
    from relax_mlir.tools import relax_compile, relax_llm, relax_opt, relax_run

    transforms = [f"relax_mlir.transforms.{file.stem}" for file in own_passes().values()]
    for name in ("relax_mlir.compiler", "relax_mlir.tools.opt_driver", "numpy", *transforms):
        import_module(name)
    with dialects.make_context():  # what a first one takes longer to do, it does here
        pass
    return {
        "relax-opt": relax_opt.main,
        "relax-compile": relax_compile.main,
        "relax-run": relax_run.main,
        "relax-llm": relax_llm.main,
        "FileCheck": lambda argv: filecheck.main.main(["FileCheck", *argv]),
    }


def _run(connection: socket.socket, tools: dict) -> None:
    """Runs one call in this process, a fork of the server, and ends it."""
    import atexit
    import traceback

    size, streams = _receive(connection)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    request = json.loads(_exactly(connection, size))
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    sys.stdin, sys.stdout, sys.stderr = (
        open(number, mode, encoding="utf-8", closefd=False)
        for number, mode in enumerate(("r", "w", "w"))
    )
    tool, *argv = request["argv"]
    sys.argv = [tool, *argv]
    try:
        status = tools[tool](argv) or 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        status = 1
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            pass
    connection.sendall((status & 255).to_bytes(4, "little"))
    os._exit(status & 255)


def _receive(connection: socket.socket) -> tuple[int, list[int]]:
    """The size of the request to come, and the client's standard streams."""
    streams = array.array("i", (0, 0, 0))
    room = socket.CMSG_LEN(len(streams) * streams.itemsize)
    data, ancillary, _, _ = connection.recvmsg(4, room)
    (_, _, sent), *_ = ancillary
    streams = array.array("i")
    streams.frombytes(sent)
    return int.from_bytes(data, "little"), list(streams)


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        data += connection.recv(size - len(data))
    return data


def _reap() -> None:
    """Lets go of the forks that have ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


if __name__ == "__main__":
    mode, socket_path, *rest = sys.argv[1:]
    sys.exit(serve(socket_path) if mode == "serve" else call(socket_path, rest))
