// Starts the threads of a module: workers of the browser, or of Node, on the memory of the module.

const isNode = typeof process !== "undefined" && process.versions?.node !== undefined;

/**
 * Starts workers of a compiled module, each with an instance on its memory; resolves when all are
 * ready. Rejects if one does not start. `end()` of each ends it.
 */
export async function startWorkers(module, memory, exports, count) {
  const mayWait = isNode || typeof document === "undefined"; // main threads of pages must not
  const stacks = exports.rx_add_workers(count, mayWait ? 1 : 0) >>> 0;
  if (!stacks) throw new RangeError(`out of memory: the stacks of ${count} threads`);
  const size = exports.rx_stack_bytes();
  const workers = [];
  try {
    for (let index = 0; index < count; index++) {
      workers.push(await newWorker({ module, memory, index, top: stacks + (index + 1) * size }, exports));
    }
    await Promise.all(workers.map((worker) => worker.ready));
  } catch (error) {
    for (const worker of workers) worker.end();
    throw error;
  }
  return workers;
}

async function newWorker(start, exports) {
  const url = new URL("./worker.js", import.meta.url);
  const lost = () => exports.rx_worker_lost(start.index);
  const Worker = isNode ? (await import("node:worker_threads")).Worker : globalThis.Worker;
  const worker = new Worker(url, isNode ? { execArgv: [] } : { type: "module" });
  const ready = new Promise((resolve, reject) => {
    const failed = (error) => {
      lost();
      reject(new Error(`a thread does not run: ${error?.message ?? "its script cannot be loaded"}`));
    };
    if (isNode) {
      worker.once("message", () => {
        worker.unref(); // programs may end without ending it
        resolve();
      });
      worker.on("error", failed);
      worker.on("exit", () => failed({ message: "it ended" }));
    } else {
      worker.onmessage = resolve;
      worker.onerror = failed;
    }
  });
  ready.catch(() => {});
  worker.postMessage(start);
  const end = () => {
    lost();
    worker.terminate();
  };
  return { ready, end };
}
