// Answers a prompt in Node: node web/generate.mjs FOLDER PROMPT [TOKENS [THREADS]], of `relax-llm export-web`.

import { load } from "./llm.js";

const [folder, prompt, maxTokens = "64", threads = "1"] = process.argv.slice(2);
if (prompt === undefined) {
  console.error("usage: node generate.mjs FOLDER PROMPT [TOKENS [THREADS]]");
  process.exit(2);
}
const model = await load(folder, { threads: Number(threads) });
const answer = model.generate(prompt, { maxTokens: Number(maxTokens) });
await answer.text((piece) => process.stdout.write(piece));
const { steps, stepSeconds } = answer.statistics;
console.log(`\n${(steps / stepSeconds).toFixed(1)} tokens/s, stopped by ${answer.stopReason}`);
model.module.close();
