// Loads the model next to the page, and answers the conversations that it is sent. The address of
// the page may end in ?threads=N.

import { load } from "./llm.js";

let model, session, stopping;
const say = (kind, fields) => postMessage({ kind, ...fields });

async function run(action) {
  try {
    await action();
  } catch (error) {
    say("error", { message: `${error.message ?? error}`, isLoaded: model !== undefined });
  }
}

run(async () => {
  const threads = Number(new URLSearchParams(self.location.search).get("threads") ?? 1);
  const progress = (state) => say("progress", state);
  model = await load(new URL(".", self.location.href).href, { progress, threads });
  session = model.session();
  say("ready", { name: model.name, target: model.target });
});

onmessage = ({ data }) => {
  if (data.kind === "stop") return stopping?.abort();
  run(async () => {
    stopping = new AbortController();
    const prompt = model.chat === null ? data.messages.at(-1).content : data.messages;
    const answer = model.generate(prompt, { session, maxTokens: null, signal: stopping.signal });
    let text = "";
    for await (const piece of answer) {
      text += piece;
      say("piece", { text: piece });
      await new Promise((resolve) => setTimeout(resolve)); // messages of the page, such as "stop"
    }
    say("done", { text, statistics: answer.statistics, stopReason: answer.stopReason });
  });
};
