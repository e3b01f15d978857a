// The page: shows what chat_worker.js does, which has the model.

const at = (id) => document.getElementById(id);
const worker = new Worker(new URL(`chat_worker.js${location.search}`, import.meta.url), { type: "module" });
const messages = [];
let answer;

function show(role, text) {
  const element = document.createElement("div");
  element.className = role;
  element.textContent = text;
  at("messages").append(element);
  return element;
}

function setBusy(isBusy) {
  at("send").disabled = at("prompt").disabled = isBusy;
  at("stop").disabled = !isBusy;
  if (!isBusy) at("prompt").focus();
}

const received = {
  progress({ loaded, total }) {
    at("progress").value = loaded / total;
    at("status").textContent = `loading ${(loaded / 1e6).toFixed(0)} of ${(total / 1e6).toFixed(0)} MB`;
  },
  ready({ name, target }) {
    at("progress").remove();
    at("name").textContent = document.title = name;
    at("status").textContent = `compiled for ${target}`;
    setBusy(false);
  },
  piece({ text }) {
    answer.textContent += text;
  },
  done({ statistics, stopReason, text }) {
    messages.push({ role: "assistant", content: text });
    const rate = (count, seconds) => (seconds ? (count / seconds).toFixed(1) : "-");
    at("status").textContent =
      `prompt: ${statistics.promptTokens} tokens, ${rate(statistics.promptTokens, statistics.promptSeconds)} tokens/s; ` +
      `answer: ${rate(statistics.steps, statistics.stepSeconds)} tokens/s; stopped by ${stopReason}`;
    setBusy(false);
  },
  error({ message, isLoaded }) {
    show("error", message);
    if (isLoaded) {
      messages.pop();
      setBusy(false);
    } else at("status").textContent = "the model is not loaded";
  },
};
worker.onmessage = ({ data }) => received[data.kind](data);
worker.onerror = (event) => received.error({ message: event.message || "the worker does not start", isLoaded: false });

at("form").onsubmit = (event) => {
  event.preventDefault();
  const content = at("prompt").value;
  if (!content.trim()) return;
  at("prompt").value = "";
  messages.push({ role: "user", content });
  show("user", content);
  answer = show("assistant", "");
  setBusy(true);
  worker.postMessage({ kind: "generate", messages });
};
at("stop").onclick = () => worker.postMessage({ kind: "stop" });
