// Functions that grow steadily, as leaks do: how fast, since when, and what that rests on. Asked when it is looked at, and by hand.
import { state, change } from "./state.js";
import { get, query, timeText } from "./api.js";

const at = (id) => document.getElementById(id);
const CALLERS_SHOWN = 4;
const SHORT_S = 11; // memlog looks each second: so many looks are the least
let live = true;
let asking = false;
let answerOf = null; // the process and the dump that the answer, or the trouble, is of
let answer = null;
let answered = 0;
let trouble = "";

export function init(isLive) {
  live = isLive;
  at("growing-again").onclick = () => ask(true);
}

const wanted = () => query("/api/v1/suspects", { pid: state.pid, dump: live ? "" : state.dump });

export async function ask(force) {
  const path = wanted();
  if (asking || (!force && path === answerOf) || (!live && !state.dump)) { return; }
  asking = true;
  if (path !== answerOf) { answer = null; }
  show();
  try {
    answer = await get(path);
    trouble = "";
  } catch (error) {
    answer = null;
    trouble = error.message;
  }
  asking = false;
  answerOf = path;
  answered = Date.now();
  draw(); // another process may be looked at by now
}

// ---- words

const secondsText = (ms) => {
  const seconds = Math.round(ms / 1000);
  const parts = [[Math.floor(seconds / 3600), "h"], [Math.floor(seconds / 60) % 60, "min"], [seconds % 60, "s"]].filter(([count]) => count);
  return parts.length ? parts.map(([count, unit]) => `${count} ${unit}`).join(" ") : "0 s";
};

function blocksText(one) {
  const freed = Math.max(0, one.total_blocks - one.live_blocks);
  if (!one.total_blocks) { return ""; }
  if (freed) { return `; of its ${countText(one.total_blocks)} blocks ${countText(freed)} ${freed === 1 ? "was" : "were"} freed`; }
  return one.total_blocks === 1 ? "; it is one block" : `; none of its ${countText(one.total_blocks)} blocks was freed`;
}

// Why it is told, in a sentence.
function reasonText(one) {
  const more = `${sizeText(one.grown_bytes)} more`;
  switch (one.verdict) {
    case "steady": return `${more} since ${timeText(one.since_ms)}: it rose in ${one.rising_steps} of ${one.steps} steps${blocksText(one)}.`;
    case "levelled": return `${more} until ${timeText(one.until_ms)} and hardly since: so does a cache that is full.`;
    case "slowing": return `${more}, ever more slowly: so does a cache that fills; a longer recording tells more.`;
    default: return `${more}, steadily until ${timeText(one.until_ms)}, then freed.`;
  }
}

const slopeText = (one) => `${sizeText(one.bytes_per_s)}/s \u00b1 ${sizeText(one.bytes_per_s_error)}`;

function aboutText() {
  if (asking && !answer) { return "Asking which functions grow \u2026"; }
  if (!answer) { return trouble || "Which functions grow steadily, as leaks do."; }
  const known = answer.to_ms - answer.from_ms;
  const steady = answer.functions.filter((one) => one.verdict === "steady").length;
  const when = live ? ` Asked at ${timeText(answered)}.` : "";
  if (!answer.functions.some((one) => one.verdict !== "too-short")) {
    return `Too short to tell: ${SHORT_S} s of a function that holds much are the least; ${secondsText(known)} of the run are known.${when}`;
  }
  if (!steady) { return `No function that was followed grew steadily in the ${secondsText(known)} that are known.${when}`; }
  return `${steady === 1 ? "One function grows" : `${steady} functions grow`} steadily; ${secondsText(known)} are known.${when}`;
}

// Of what is live, and which process grows without a function that does.
function basisText() {
  const sum = (name) => answer.processes.reduce((all, one) => all + one[name], 0);
  const named = (process) => answer.functions.some((one) => one.pid === process.pid && one.verdict === "steady");
  const whole = answer.processes.filter((one) => one.verdict === "steady" && !named(one))
    .map((one) => `${one.name} ${one.pid} as a whole grows steadily by ${slopeText(one)}, in stacks that hold too little to be followed, or do not grow steadily themselves.`);
  const short = answer.functions.filter((one) => one.verdict === "too-short").length;
  const share = sum("live_bytes") ? `: ${shareText(sum("followed_bytes"), sum("live_bytes"))} of what is live` : "";
  return [...whole, `memlog follows the 20 stacks of each process that hold most${share}.`,
    ...(short && short < answer.functions.length ? [`For ${countText(short)} of ${countText(answer.functions.length)} functions the time is too short to tell.`] : []),
    "What is not named may leak all the same."].join(" ");
}

// ---- what is seen

// The frame that has the function's brief name: without its template's arguments and its parameters. -1: none.
function placeOf(one) {
  const brief = (name) => {
    let text = name;
    for (let before = ""; before !== text;) { before = text; text = text.replace(/<[^<>]*>/g, ""); }
    return text.replace(/\(.*$/, "");
  };
  const exact = one.frames.findIndex((frame) => frame.function === one.function);
  return exact >= 0 ? exact : one.frames.findIndex((frame) => frame.function && brief(frame.function) === brief(one.function));
}

function open(one) {
  const frame = one.frames[placeOf(one)];
  const where = frame ? { function: functionText({ name: frame.function }) } : { function: "", search: one.function };
  change({ pid: one.pid, tab: "", by: "", before: "", zoom: "", ...where });
}

function item(one) {
  const line = document.createElement("li");
  const name = document.createElement("button");
  const reason = document.createElement("p");
  const callers = document.createElement("p");
  name.className = "link";
  name.textContent = one.function;
  name.title = "Its callers and callees";
  name.onclick = () => open(one);
  reason.textContent = reasonText(one);
  const above = one.frames.slice(placeOf(one) + 1).map((frame) => frame.function || frame.module).filter(Boolean);
  callers.textContent = `In ${one.name} ${one.pid}${above.length ? `, called by ${above.slice(0, CALLERS_SHOWN).join(" \u2039 ")}${above.length > CALLERS_SHOWN ? " \u2039 \u2026" : ""}` : ""}`;
  line.append(name, ...(one.verdict === "steady" ? [" ", slopeText(one)] : []), reason, callers);
  return line;
}

function show() {
  if (state.tab !== "growing") { return; }
  const of = (...verdicts) => (answer?.functions || []).filter((one) => verdicts.includes(one.verdict));
  const rest = of("freed", "slowing", "levelled");
  at("growing-about").textContent = aboutText();
  at("growing-about").classList.toggle("bad", !answer && !asking && Boolean(trouble));
  at("growing-view").classList.toggle("waiting", asking);
  at("growing-list").replaceChildren(...of("steady").map(item));
  at("growing-rest-title").hidden = !rest.length;
  at("growing-rest").replaceChildren(...rest.map(item));
  at("growing-basis").textContent = answer ? basisText() : "";
}

// Drawn anew when something else is looked at, not with each event: a list that people read stays.
export function draw() {
  if (state.tab !== "growing") { return; }
  if (wanted() !== answerOf) { ask(false); }
  show();
}
