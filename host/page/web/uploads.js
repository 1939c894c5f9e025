// What leaves this machine: send a pruned dump, and how those went that were sent. Only of a run with --upload.
import { get, post, timeText } from "./api.js";
import { whyLost } from "./lost.js";

const at = (id) => document.getElementById(id);
let say = () => {};
let known = "";

export function init(isThere, onSay) {
  say = onSay;
  at("uploads").hidden = !isThere;
  at("send").onclick = send;
  if (isThere) { load().catch((error) => say(error.message, true)); }
}

async function send() {
  at("send").disabled = true;
  say("Taking a dump, to send it \u2026");
  try {
    const made = await post("/api/v1/upload");
    say(`${made.file} was taken; what is pruned of it leaves as soon as it can.`);
    await load();
  } catch (error) {
    say(error.message, true);
  } finally {
    at("send").disabled = Boolean(whyLost());
  }
}

// What the run tells every second: something new to read here?
export function take(what) {
  const now = `${what.uploads_told} ${what.uploads_waiting}`;
  if (what.uploads_told === undefined || now === known) { return; }
  known = now;
  load().catch((error) => say(error.message, true));
}

async function load() {
  const answer = await get("/api/v1/uploads");
  const parts = [`to ${answer.target}`, `${answer.sent} sent (${sizeText(answer.sent_bytes)})`, `${answer.waiting} waiting`];
  if (answer.retries) { parts.push(`${answer.retries} tries failed`); }
  if (answer.given_up) { parts.push(`${answer.given_up} given up`); }
  if (answer.refused) { parts.push(`${answer.refused} refused`); }
  if (answer.next_ms) { parts.push(`next try ${timeText(answer.next_ms)}`); }
  at("uploads-about").textContent = parts.join(", ");
  at("uploads-error").hidden = !answer.last_error;
  at("uploads-error").textContent = answer.last_error;
  at("uploads-list").replaceChildren(...answer.history.toReversed().map((line) => {
    const item = document.createElement("li");
    item.textContent = line;
    return item;
  }));
}
