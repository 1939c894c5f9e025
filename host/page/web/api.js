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

// One clock, as in everything that memlog prints: UTC, said by the Z; timeline --from= and --to= take it.
export const timeText = (ms) => `${new Date(ms).toISOString().slice(11, 19)}Z`;
export const momentText = (ms) => `${new Date(ms).toISOString().slice(0, 19)}Z`;
