"""Tokens per second of a language model in WebAssembly, compared with wllama, in Chromium.

    npm install @wllama/wllama
    python benchmarks/wasm.py --wllama node_modules/@wllama/wllama --threads 1,2

The model is SmolLM2-135M in Q4_1. Programs take turns, each in a page of its own, and are compared
round by round. It needs Chromium and the package playwright. The exit status is 1 if ours is less
than 1.5 times as fast.
"""

import argparse
import http.server
import os
import shutil
import statistics
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from relax_mlir.errors import UsageError
from relax_mlir.llm.checkpoints.checkpoint import Checkpoint, open_checkpoint
from relax_mlir.llm.decoder.decoder import Settings
from relax_mlir.llm.web.export import export_web
from relax_mlir.tools.cli import described, guard

GOAL = 1.5
HERE = Path(__file__).resolve().parent
PROMPT = "The three primary colours are red, green and blue. Mixing them, a painter"
FLAGS = ("--no-sandbox", "--headless=new", "--no-first-run", "--disable-dev-shm-usage")
OPEN = """async ({ peer, source, threads }) => {
  window.program = await (await import(`/peers/${peer}.js`)).open(source, threads);
}"""
GENERATE = "({ prompt, tokens }) => window.program.generate(prompt, tokens)"


class _Files(http.server.SimpleHTTPRequestHandler):
    """Serves folders and files by their names, to pages that may have threads."""

    served: ClassVar[dict[str, Path]] = {}

    def translate_path(self, path: str) -> str:
        """The file of an address."""
        name, _, rest = path.partition("?")[0].lstrip("/").partition("/")
        return str(self.served.get(name, Path("/nowhere")) / rest).rstrip("/")

    def end_headers(self) -> None:
        """Isolates pages."""
        self.send_header("Cross-Origin-Opener-Policy", "same-origin")
        self.send_header("Cross-Origin-Embedder-Policy", "require-corp")
        super().end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


def main() -> int:
    """Runs the command; 1 if the goal is missed."""
    return guard("wasm", run)


def run() -> int:
    """Measures, and prints a table; raises UsageError."""
    options = _options()
    browser = options.chromium or shutil.which("chromium") or shutil.which("chrome")
    if browser is None:
        raise UsageError("there is no Chromium: apt-get install chromium, or --chromium FILE")
    wllama = Path(options.wllama, "esm")
    if not (wllama / "index.js").is_file():
        raise UsageError(f"no wllama in '{options.wllama}': npm install @wllama/wllama")
    checkpoint = open_checkpoint("smollm2")
    missed = False
    with tempfile.TemporaryDirectory(prefix="wasm-") as work:
        _Files.served |= {"peers": HERE / "peers" / "web", "web": HERE.parent / "web"}
        _Files.served |= {"wllama": wllama, "model.gguf": checkpoint.path, "empty": _empty(work)}
        for threads in map(int, options.threads.split(",")):
            programs = {"wllama": ("wllama", "/model.gguf")}
            for target in options.targets.split(","):
                name = f"{target}+atomics" if threads > 1 else target
                programs[name] = ("relax", _exported(checkpoint, name, Path(work)))
            speeds = _measured(programs, threads, browser, options)
            missed |= _print(speeds, threads)
    return int(missed)


def _options() -> argparse.Namespace:
    parser = described("Compares tokens per second in WebAssembly with wllama's.", "wasm")
    parser.add_argument("--wllama", required=True, help="the folder of the package")
    parser.add_argument("--threads", default="1,2", help="counts, such as 1,2")
    parser.add_argument("--targets", default="wasm32,wasm32-relaxed", help="ours, without threads")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=48, help="of an answer")
    parser.add_argument("--chromium", default=os.environ.get("RELAX_CHROMIUM"), help="its file")
    return parser.parse_args()


def _empty(work: str) -> Path:
    page = Path(work, "empty.html")
    page.write_text("<!doctype html><title>benchmark</title>")
    return page


def _exported(checkpoint: Checkpoint, target: str, work: Path) -> str:
    """The address of the model, compiled for a target."""
    export_web(checkpoint, Settings(target=target), work / target, context=512)
    _Files.served[target] = work / target
    return f"/{target}/"


@contextmanager
def _server() -> Iterator[str]:
    """A local server; its address."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Files)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()


def _measured(
    programs: dict[str, tuple[str, str]], threads: int, browser: str, options: argparse.Namespace
) -> dict[str, list[float]]:
    """Tokens per second of each program in each round, after a first one that warms up."""
    from playwright.sync_api import sync_playwright

    with ExitStack() as stack:
        url = stack.enter_context(_server())
        playwright = stack.enter_context(sync_playwright())
        launch = partial(playwright.chromium.launch, executable_path=browser, args=list(FLAGS))
        context = stack.enter_context(launch())
        pages = {}
        for name, (peer, source) in programs.items():
            page = context.new_page()
            page.set_default_timeout(300_000)
            page.goto(f"{url}/empty")
            page.evaluate(OPEN, {"peer": peer, "source": source, "threads": threads})
            pages[name] = page
        speeds: dict[str, list[float]] = {name: [] for name in programs}
        for turn in range(options.rounds + 1):
            for name, page in pages.items():
                answer = page.evaluate(GENERATE, {"prompt": PROMPT, "tokens": options.tokens})
                if not answer["text"]:
                    raise UsageError(f"{name} answered nothing")
                if turn:
                    speeds[name].append(answer["speed"])
        return speeds


def _print(speeds: dict[str, list[float]], threads: int) -> bool:
    """Prints a table; whether one of ours misses the goal."""
    base = speeds["wllama"]
    print(f"\n{threads} threads\n\n| program | tokens/s | by wllama's |\n|---|---|---|")
    missed = False
    for name, own in speeds.items():
        ratio = statistics.median(a / b for a, b in zip(own, base, strict=True))
        missed |= name != "wllama" and ratio < GOAL
        print(f"| {name} | {statistics.median(own):.1f} | {ratio:.2f} |", flush=True)
    return missed


if __name__ == "__main__":
    sys.exit(main())
