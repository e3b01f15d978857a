"""A headless Chromium that runs kernels and pages: one for a process, started at the first use."""

import atexit
import base64
import functools
import http.server
import os
import shutil
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from queue import SimpleQueue
from typing import Any, ClassVar

import numpy as np

from relax_mlir.bindings import ir
from relax_mlir.codegen.gpu import device_kernels
from relax_mlir.codegen.gpu.wgsl import compile_wgsl
from relax_mlir.interpreter import Interpreted
from relax_mlir.interpreter.frame import Launch
from relax_mlir.passes import Pipeline
from relax_mlir.pipelines import outlining
from relax_mlir.target import Device

WEB = Path(__file__).parents[2] / "web"
EXECUTABLE = os.environ.get("RELAX_CHROMIUM") or shutil.which("chromium") or shutil.which("chrome")
FLAGS = (
    *("--no-sandbox", "--headless=new", "--no-first-run", "--disable-extensions"),
    *("--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader", "--disable-quic"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    "--disable-dev-shm-usage",
)
_TIMEOUT_MS = 120_000


def missing() -> str | None:
    """What keeps Chromium from running here; None if nothing does."""
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        return "needs the package playwright"
    return None if EXECUTABLE else "needs Chromium: apt-get install chromium"


class _Files(http.server.SimpleHTTPRequestHandler):
    """Serves `web/`, and folders that tests add under a name."""

    folders: ClassVar[dict[str, Path]] = {}

    def translate_path(self, path: str) -> str:
        name, _, rest = path.partition("?")[0].lstrip("/").partition("/")
        if name in self.folders:
            return str(self.folders[name] / rest)
        return super().translate_path(path)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


class Chromium:
    """A browser with a page of a local server, driven by a thread of its own.

    Playwright occupies the event loop of its thread, which others may need.
    """

    def __init__(self) -> None:
        handler = functools.partial(_Files, directory=str(WEB))
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._profile = tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True)
        self.console: list[str] = []
        empty = Path(self._profile.name, "served")
        empty.mkdir()
        (empty / "index.html").write_text("<!doctype html><title>test</title>")
        self._calls: SimpleQueue[Callable[[], None]] = SimpleQueue()
        threading.Thread(target=self._work, daemon=True).start()
        self.call(self._start)
        self._empty = f"{self.serve('empty', empty)}/index.html"
        self.leave()
        atexit.register(self.close)

    def _start(self) -> None:
        from playwright.sync_api import sync_playwright

        self._playwright = sync_playwright().start()
        self._context = self._playwright.chromium.launch_persistent_context(
            str(Path(self._profile.name, "profile")), executable_path=EXECUTABLE, headless=True,
            args=list(FLAGS), timeout=_TIMEOUT_MS,
        )  # fmt: skip
        self.page = self._context.new_page()
        self.page.set_default_timeout(_TIMEOUT_MS)
        self.page.on("console", lambda message: self.console.append(message.text))
        self.page.on("pageerror", lambda error: self.console.append(str(error)))

    def _work(self) -> None:
        while True:
            self._calls.get()()

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Calls a function of Playwright in the browser's thread."""
        made: Future[Any] = Future()

        def run() -> None:
            try:
                made.set_result(function(*arguments))
            except BaseException as error:
                made.set_exception(error)

        self._calls.put(run)
        return made.result()

    def open(self, url: str) -> None:
        """Opens an address in the page."""
        self.call(self.page.goto, url)

    def leave(self) -> None:
        """Opens an empty page of the local server, from which its modules can be imported."""
        self.open(self._empty)

    def serve(self, name: str, folder: Path) -> str:
        """Serves a folder; returns its address."""
        _Files.folders[name] = folder
        return f"{self.url}/{name}"

    def run(self, script: str, argument: Any = None) -> Any:
        """The value of a JavaScript function of one argument."""
        return self.call(self.page.evaluate, script, argument)

    def _stop(self) -> None:
        self._context.close()
        self._playwright.stop()

    def close(self) -> None:
        """Ends the browser and the server."""
        atexit.unregister(self.close)
        self.call(self._stop)
        self._server.shutdown()
        self._profile.cleanup()


_LAUNCH = """async ({ name, code, grid, values }) => {
  const { WebGpu } = await import("/webgpu.js");
  if (window.gpu?.isLost) window.gpu = window.kernels = undefined;
  const gpu = (window.gpu ??= await WebGpu.open());
  const kernels = (window.kernels ??= new Map());
  if (!kernels.has(name)) kernels.set(name, await gpu.compile(code));
  const bytesOf = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const textOf = (bytes) => {
    let text = "";
    for (let i = 0; i < bytes.length; i += 8192) {
      text += String.fromCharCode(...bytes.subarray(i, i + 8192));
    }
    return btoa(text);
  };
  const kernel = kernels.get(name);
  const passed = values.map((value) => {
    if (value.data === undefined) return value.float ?? BigInt(value.bits);
    const data = bytesOf(value.data);
    const address = gpu.allocate(data.length);
    gpu.upload(address, data);
    return { address, bytes: data.length };
  });
  try {
    gpu.launch(kernel, grid, passed);
    const results = [];
    for (const [i, value] of passed.entries()) {
      if (!kernel.arguments[i].written) continue;
      results.push([i, textOf(await gpu.download(value.address, value.bytes))]);
    }
    return results;
  } finally {
    for (const value of passed) if (value.address) gpu.free(value.address);
  }
}"""


@functools.cache
def chromium() -> Chromium:
    """The browser of this process."""
    return Chromium()


def in_chromium(module: ir.Module) -> Interpreted:
    """A module whose kernels run in Chromium, and all else in the interpreter."""
    Pipeline.parse(outlining("webgpu")).run(module, verify=True)
    device = Device.parse("webgpu")
    kernels = device_kernels(module.operation)
    codes = {kernel.name: compile_wgsl(kernel, device) for kernel in kernels}
    return Interpreted(module, launch=launcher(codes))


def launcher(codes: dict[str, bytes]) -> Launch:
    """Runs kernels in Chromium, as `Interpreted` asks for; `codes` are their codes by name."""

    def launch(name: str, grid: Any, operands: Any) -> None:
        code = codes[name].decode()
        values = [_passed(x) for x in operands]
        browser = chromium()
        found = browser.run(
            _LAUNCH, {"name": code, "code": code, "grid": list(map(int, grid)), "values": values}
        )
        for index, text in found:
            made = np.frombuffer(base64.b64decode(text), np.uint8)
            array = operands[index]
            array.reshape(-1).view(np.uint8)[...] = made

    return launch


def _passed(x: Any) -> dict[str, Any]:
    if isinstance(x, np.ndarray) and x.ndim:
        return {"data": base64.b64encode(x.tobytes()).decode()}
    if isinstance(x, float | np.floating):
        return {"float": float(x)}
    return {"bits": str(int(x))}
