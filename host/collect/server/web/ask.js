// Questions to the collector. Who asks needs a read token, which stays in this tab's storage and goes out in one header alone.
import { query, clockText } from "/api.js";

const KEY = "memlog-read-token";
const KEPT_MS = 30000; // going back and forth asks nobody
const KEPT_MOST = 12;
const WAITS_MS = [1000, 2000, 4000, 8000];
const kept = new Map();
let token = sessionStorage.getItem(KEY) || "";
let tell = () => {};

export const hasToken = () => token !== "";

export function setToken(text) {
  token = text;
  kept.clear();
  if (text) { sessionStorage.setItem(KEY, text); } else { sessionStorage.removeItem(KEY); }
}

// `call` is told what is wrong while it is asked again and again, and "" when that is over.
export const onTrouble = (call) => { tell = call; };
export const forget = () => kept.clear();

// `status`: the collector's answer; 0: none.
class Refusal extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

const sleep = (ms, signal) => new Promise((done, failed) => {
  const timer = setTimeout(done, ms);
  signal?.addEventListener("abort", () => { clearTimeout(timer); failed(signal.reason); }, { once: true });
});

async function once(address, signal) {
  if (!/^[!-~]+$/.test(token)) { throw new Refusal(401, "that is no token"); }
  let response;
  let text;
  try {
    response = await fetch(address, { headers: { Authorization: `Bearer ${token}` }, credentials: "omit", cache: "no-store", signal });
    text = await response.text();
  } catch (error) {
    signal?.throwIfAborted();
    throw new Refusal(0, "the collector does not answer");
  }
  if (!response.ok) { throw new Refusal(response.status, text.trim().slice(0, 400) || `the collector answered ${response.status}`); }
  try { return JSON.parse(text); } catch { throw new Refusal(500, "the collector's answer is no JSON"); }
}

// What passes by itself: nobody there, or too much to do.
const passes = (error) => [0, 429, 503].includes(error.status);

async function patiently(address, signal) {
  const since = clockText(Date.now());
  for (let tries = 0; ; tries++) {
    try {
      const answer = await once(address, signal);
      if (tries) { tell(""); }
      return answer;
    } catch (error) {
      if (!(error instanceof Refusal) || !passes(error)) { throw error; }
      const wait = WAITS_MS[Math.min(tries, WAITS_MS.length - 1)];
      tell(`${error.message[0].toUpperCase()}${error.message.slice(1)}, since ${since}. It is asked again every ${WAITS_MS.at(-1) / 1000} seconds at most; what is shown here stays.`);
      await sleep(wait, signal);
    }
  }
}

// The answer to a question of docs/schemas/fleet.json. It waits for a collector that is away.
export async function ask(question, words, signal) {
  const address = query(`/api/v1/fleet/${question}`, words);
  const found = kept.get(address);
  if (found && Date.now() - found.at < KEPT_MS) { return found.answer; }
  const answer = await patiently(address, signal);
  kept.delete(address);
  kept.set(address, { at: Date.now(), answer });
  while (kept.size > KEPT_MOST) { kept.delete(kept.keys().next().value); }
  return answer;
}
