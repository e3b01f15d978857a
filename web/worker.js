// A thread of a module: works on parallel loops until it is ended.

const isNode = typeof process !== "undefined" && process.versions?.node !== undefined;
const port = isNode ? (await import("node:worker_threads")).parentPort : globalThis;
const start = await new Promise((resolve) => {
  if (isNode) port.once("message", resolve);
  else port.onmessage = ({ data }) => resolve(data);
});

const relax = { memory: start.memory, now: () => BigInt(Math.round(performance.now() * 1e6)), print: () => {} };
const { exports } = await WebAssembly.instantiate(start.module, { relax });
exports.__stack_pointer.value = start.top;
port.postMessage("ready");
for (;;) {
  try {
    exports.rx_work(start.index);
  } catch {
    exports.__stack_pointer.value = start.top;
    exports.rx_worker_trapped(start.index); // the caller reports it
  }
}
