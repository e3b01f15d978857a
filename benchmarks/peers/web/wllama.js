// wllama, llama.cpp for WebAssembly, which runs in a worker of its own; no GPU.

import { Wllama } from "/wllama/index.js";

export async function open(file, threads) {
  const quiet = { debug() {}, log() {}, warn() {}, error: console.error };
  const wasm = { default: new URL("/wllama/wasm/wllama.wasm", location.href).href };
  const wllama = new Wllama(wasm, { suppressNativeLog: true, logger: quiet });
  const data = await (await fetch(file)).blob();
  await wllama.loadModel([data], { n_threads: threads, n_gpu_layers: 0, n_ctx: 512 });
  return {
    async generate(prompt, tokens) {
      const options = { prompt, max_tokens: tokens, temperature: 0, cache_prompt: false };
      const { choices, timings } = await wllama.createCompletion(options);
      return { text: choices[0].text, speed: timings.predicted_per_second };
    },
  };
}
