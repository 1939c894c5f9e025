// What the first view shows is asked for at once, while the rest of the page is still on its way: who runs, and the profile that the
// address names. The rest finds it here.
import { state } from "./state.js";
import { get, query, session as askSession } from "./api.js";

export const showsProfile = () => ["", "flame", "functions"].includes(state.tab);

// What stands outside of the functions, or inside of them. A table of types wants them outside: there no thin one hides in another.
export const order = () => state.tab === "functions" ? state.by.replace("backtrace,", "") : state.by;

// What is looked at, as a question to memlog.
export function question() {
  const words = { pid: state.pid, role: state.pid ? "" : state.role, by: order() };
  if (state.before) { return query("/api/v1/diff", { from: state.before, to: state.dump, ...words }); }
  return query("/api/v1/profile", { dump: state.dump, ...words });
}

// ---- what the run tells; what comes before somebody listens waits

const unheard = [];
let hear = (...told) => unheard.push(told);

function listen() {
  const events = new EventSource("/api/v1/events");
  for (const name of ["all", "update", "error"]) { events.addEventListener(name, (event) => hear(name, event)); }
}

// Call `on` with each event's name and the event, "error" among them.
export function follow(on) {
  hear = on;
  unheard.splice(0).forEach((told) => on(...told));
}

// ---- the profile

let asked = "";
let answer = null;

// The answer, if this is what was asked first; once.
export function early(wanted) {
  const found = wanted === asked ? answer : null;
  answer = null;
  return found;
}

export const session = askSession();
session.then((told) => {
  if (told.live) { listen(); } // its short answer goes before the profile's
  if (showsProfile() && (told.live || state.dump)) {
    asked = question();
    answer = get(asked);
    answer.catch(() => {}); // said where it is shown
  }
}).catch(() => {});
