// A folder of `relax-llm export-web` in a worker, since threads must not wait in a page.

export async function open(folder, threads) {
  const worker = new Worker("/peers/relax_worker.js", { type: "module" });
  const ask = (request) =>
    new Promise((resolve, reject) => {
      worker.onmessage = ({ data }) => (data.error ? reject(new Error(data.error)) : resolve(data));
      worker.onerror = ({ message }) => reject(new Error(message));
      worker.postMessage(request);
    });
  await ask({ folder, threads });
  return { generate: (prompt, tokens) => ask({ prompt, tokens }) };
}
