// What is seen, as the fragment of the address holds it: whatever is shown can be sent as a link. The token is no part of it.
const SELECTION = ["program", "build", "metric", "from", "until", "control"]; // goes along from view to view
const OWN = ["view", "other", "host", "stack", "guid", "rows", "zoom", "search", "invert", "colour"];
const listeners = [];

const words = () => new URLSearchParams(location.hash.slice(1));

function read() {
  const found = {};
  for (const key of [...SELECTION, ...OWN]) { found[key] = words().get(key) || ""; }
  return found;
}

export let where = read();

function text(what) {
  const given = new URLSearchParams(Object.entries(what).filter(([, value]) => value !== "" && value !== undefined && value !== null));
  return given.size ? `#${given}` : "#";
}

// The address of another view of the same selection, `what` apart.
export function link(what) {
  const kept = Object.fromEntries(SELECTION.map((key) => [key, where[key]]));
  return text({ view: "", ...kept, ...what });
}

// The address of the same view, `what` apart.
export const here = (what) => text({ ...where, ...what });

export const go = (what) => { location.hash = here(what); };

// Keep it in the address without drawing anew: the teller has drawn it already.
export function note(what) {
  if (Object.entries(what).every(([key, value]) => where[key] === value)) { return; }
  Object.assign(where, what);
  history.replaceState(null, "", text(where));
}

export const onWhere = (call) => listeners.push(call);

// A token in the fragment is taken out of the address, and so out of the history. "": there is none.
export function takeToken() {
  const all = words();
  const token = all.get("token") || "";
  if (all.has("token")) {
    all.delete("token");
    history.replaceState(null, "", all.size ? `#${all}` : location.pathname);
  }
  return token;
}

window.addEventListener("hashchange", () => {
  const before = where;
  where = read();
  listeners.forEach((call) => call(before));
});

// ---- what questions take of it

const DAY_MS = 86400000;
// Of a day as the address holds it (UTC); NaN: it is none.
const dayOf = (day) => /^\d{4}-\d\d-\d\d$/.test(day) ? Date.parse(`${day}T00:00:00Z`) : NaN;

export function times() {
  const [from, until] = [dayOf(where.from), dayOf(where.until)];
  return { from_ms: from > 0 ? from : "", until_ms: until > 0 ? until + DAY_MS - 1 : "" };
}

// The Monday on or before a day, as sums are kept.
const mondayOf = (ms) => new Date(Math.floor((Math.floor(ms / DAY_MS) + 3) / 7) * 7 * DAY_MS - 3 * DAY_MS);

// Sums are kept by the week: what is really added up. "": all of it.
export function weeksText() {
  const { from_ms: from, until_ms: until } = times();
  const day = (date) => date.toISOString().slice(0, 10);
  if (!from && !until) { return ""; }
  const parts = [from ? `from Monday ${day(mondayOf(from))}` : "", until ? `until Sunday ${day(new Date(mondayOf(until).getTime() + 6 * DAY_MS))}` : ""];
  return `Whole weeks (UTC) ${parts.filter(Boolean).join(" ")}. `;
}

// How many rows are wanted; the collector gives 10,000 at most.
export const rowsWanted = (usual) => Math.min(10000, Math.max(1, Number.parseInt(where.rows, 10) || usual));
