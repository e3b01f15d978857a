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

/** Writes why the thread stopped to the memory of the module, where the caller finds it. */
function tell(message) {
  const most = exports.rx_trap_bytes() - 1;
  const bytes = new TextEncoder().encode(message || "it does not say why").subarray(0, most);
  const room = new Uint8Array(start.memory.buffer, exports.rx_trap_text(start.index) >>> 0, bytes.length + 1);
  room.set(bytes);
  room[bytes.length] = 0;
}

for (;;) {
  try {
    exports.rx_work(start.index);
  } catch (error) {
    exports.__stack_pointer.value = start.top;
    tell(error.message);
    exports.rx_worker_trapped(start.index); // the caller reports it
  }
}
