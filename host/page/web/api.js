// What memlog answers; an error is an Error whose message is its own word.
let pageToken = "";

async function answerOf(response) {
  const answer = await response.json().catch(() => ({ error: `memlog answered ${response.status}` }));
  if (!response.ok) { throw new Error(answer.error || `memlog answered ${response.status}`); }
  return answer;
}

async function ask(path, options) {
  let response;
  try { response = await fetch(path, options); } catch { throw new Error("memlog does not answer: has the run ended?"); }
  return answerOf(response);
}

// The answer is text for people.
export async function getText(path) {
  let response;
  try { response = await fetch(path); } catch { throw new Error("memlog does not answer: has the run ended?"); }
  if (!response.ok) { return answerOf(response); }
  return response.text();
}

export const get = (path, signal) => ask(path, { signal });
export const post = (path) => ask(path, { method: "POST", headers: { "X-Memlog-Page": pageToken } });

export async function session() {
  const answer = await get("/api/v1/session");
  pageToken = answer.page_token;
  return answer;
}

export function query(path, words) {
  const given = new URLSearchParams(Object.entries(words).filter(([, value]) => value !== "" && value !== undefined && value !== null));
  return given.size ? `${path}?${given}` : path;
}

// The reader's clock, and its zone beside it: what memlog prints elsewhere is UTC, and ends with Z.
const two = (number) => String(number).padStart(2, "0");
const clock = (date) => [date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(":");
const zone = (date) => new Intl.DateTimeFormat("en", { timeZoneName: "short" }).formatToParts(date).find((part) => part.type === "timeZoneName").value;

export const zoneText = (ms) => zone(new Date(ms));
export const clockText = (ms) => clock(new Date(ms));
export const timeText = (ms) => `${clockText(ms)} ${zoneText(ms)}`;
export const momentText = (ms) => {
  const date = new Date(ms);
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${timeText(ms)}`;
};

// An analyzer's sentence, whose moments are UTC, by the reader's clock.
export const localText = (text) => text.replace(/\b\d{4}-\d\d-\d\dT[\d:.]+Z/g, (moment) => momentText(Date.parse(moment)));
