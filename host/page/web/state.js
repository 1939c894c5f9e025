// What is seen, as the address bar holds it.
const KEYS = ["tab", "pid", "role", "metric", "by", "dump", "before", "search", "invert", "flame", "plumbing", "function", "zoom", "filter", "ended", "sort", "span", "component"];
const listeners = [];

function read() {
  const words = new URLSearchParams(location.hash.slice(1));
  const found = {};
  for (const key of KEYS) { found[key] = words.get(key) || ""; }
  return found;
}

export const state = read();

// The browser's Back undoes a step, as choosing another function is one.
function write(isStep) {
  const words = new URLSearchParams();
  for (const key of KEYS) { if (state[key]) { words.set(key, state[key]); } }
  const hash = words.toString();
  if (hash !== location.hash.slice(1)) {
    history[isStep ? "pushState" : "replaceState"](null, "", hash ? "#" + hash : location.pathname);
  }
}

// Change some of it; whoever listens is told what changed.
export function change(what) {
  const changed = Object.keys(what).filter((key) => state[key] !== String(what[key] ?? ""));
  for (const key of changed) { state[key] = String(what[key] ?? ""); }
  write(changed.includes("function"));
  if (changed.length) { listeners.forEach((call) => call(changed)); }
}

// Keep it in the address without telling anybody: the teller has drawn it already.
export function note(what) {
  Object.assign(state, what);
  write();
}

export const onChange = (call) => listeners.push(call);

for (const kind of ["popstate", "hashchange"]) { window.addEventListener(kind, () => change(read())); }
