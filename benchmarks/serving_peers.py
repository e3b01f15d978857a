"""Other servers that `serving.py` measures: llama.cpp's, and vLLM's on CPUs."""

import argparse
import os
import socket
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from llm_model import export_hugging_face

from relax_mlir.errors import UsageError
from relax_mlir.llm.checkpoints.checkpoint import open_checkpoint

READY_SECONDS = 900
"""What vLLM may take to start: it compiles the model."""
LLAMA_SERVER = """
import sys, time, xllamacpp
params = xllamacpp.CommonParams()
path, threads, clients, context = sys.argv[1], *map(int, sys.argv[2:])
params.model.path = path
params.n_parallel, params.n_ctx = clients, clients * context
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
params.cont_batching, params.port, params.n_gpu_layers = True, 0, 0
server = xllamacpp.Server(params)
print("listens at", server.listening_address, flush=True)
while True:
    time.sleep(1)
"""
"""llama.cpp's own server, as the package xllamacpp has it."""


@contextmanager
def llama_server(args: argparse.Namespace, name: str) -> Iterator[str]:
    """llama.cpp's server with as many slots as there are clients."""
    context = args.longest + args.answer + 2
    path = str(open_checkpoint(args.model).path)
    sizes = map(str, [args.threads, args.clients, context])
    command = [args.peers_python, "-c", LLAMA_SERVER, path, *sizes]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        assert server.stdout is not None
        try:
            for line in server.stdout:
                if line.startswith("listens at "):
                    yield line.rstrip().rpartition(" ")[2]
                    return
        finally:
            server.kill()
    raise UsageError(f"'{args.peers_python}' has no server of llama.cpp: pip install xllamacpp")


@contextmanager
def vllm_server(args: argparse.Namespace, name: str) -> Iterator[str]:
    """vLLM's server, in float32, on the model as a Hugging Face folder; `name` is for requests."""
    with tempfile.TemporaryDirectory() as folder:
        export_hugging_face(open_checkpoint(args.model), Path(folder))
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        options = {
            "model": folder,
            "served-model-name": name,
            "dtype": "float32",
            "host": "127.0.0.1",
            "port": port,
            "max-model-len": args.longest + args.answer + 2,
            "max-num-seqs": args.clients,
        }
        command = [args.vllm_python, "-m", "vllm.entrypoints.openai.api_server"]
        command += [text for key, value in options.items() for text in (f"--{key}", str(value))]
        settings = {
            "OMP_NUM_THREADS": str(args.threads),
            "VLLM_CPU_OMP_THREADS_BIND": "nobind",
            "VLLM_CPU_KVCACHE_SPACE": "2",
            "VLLM_NO_USAGE_STATS": "1",
            "HF_HUB_OFFLINE": "1",
        }
        log = Path(folder, "log").open("wb")
        with (
            log,
            subprocess.Popen(
                command,
                env={**os.environ, **settings},
                stdout=log,
                stderr=log,
                start_new_session=True,
            ) as server,
        ):
            try:
                url = f"http://127.0.0.1:{port}"
                _wait_until_ready(server, f"{url}/health", Path(log.name))
                yield url
            finally:
                server.terminate()
                server.wait(60)


def _wait_until_ready(server: "subprocess.Popen[bytes]", url: str, log: Path) -> None:
    end = time.monotonic() + READY_SECONDS
    while time.monotonic() < end:
        if server.poll() is not None:
            raise UsageError(f"vLLM ends:\n{log.read_text(errors='replace')[-2000:]}")
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except OSError:
            time.sleep(1)
    raise UsageError(f"vLLM does not answer within {READY_SECONDS} s")


PEERS: dict[str, Callable[[argparse.Namespace, str], AbstractContextManager[str]]] = {
    "llama.cpp": llama_server,
    "vllm": vllm_server,
}
