// See relax.js.

import { load } from "/web/llm.js";

let model;
onmessage = async ({ data }) => {
  try {
    if (data.folder) {
      model = await load(new URL(data.folder, self.location.href).href, { threads: data.threads });
      return postMessage({});
    }
    const answer = model.generate(data.prompt, { raw: true, maxTokens: data.tokens });
    const text = await answer.text();
    answer.session.free();
    const { steps, stepSeconds } = answer.statistics;
    postMessage({ text, speed: steps / stepSeconds });
  } catch (error) {
    postMessage({ error: `${error.message ?? error}` });
  }
};
