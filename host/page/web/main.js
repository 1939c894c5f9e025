// The page: who is looked at, in which view. Everything seen is in the address bar (state.js).
import { state, change, onChange } from "./state.js";
import * as api from "./api.js";
import * as first from "./first.js";
import * as processes from "./processes.js";
import * as profile from "./profile.js";
import * as dumps from "./dumps.js";
import * as timeline from "./timeline.js";
import * as memory from "./memory.js";
import * as growing from "./growing.js";
import * as uploads from "./uploads.js";
import * as lost from "./lost.js";

const at = (id) => document.getElementById(id);
const TABS = [["", "Flame graph", "flame-view"], ["functions", "Functions", "functions-view"], ["timeline", "Timeline", "timeline-view"], ["dumps", "Dumps", "dumps-view"], ["memory", "Memory", "memory-view"], ["growing", "Growing", "growing-view"]];
let session = null;
let isServing = true;
let known = -1; // dumps that were there

function say(text, isBad) {
  const box = at("message");
  box.textContent = text;
  box.hidden = !text;
  box.classList.toggle("bad", Boolean(isBad));
}

function sayTotals(tree) {
  const counted = session.live ? processes.all().filter((row) => row.state === "running") : processes.all();
  const count = processes.countOf(counted);
  const images = processes.imagesOf(counted);
  const countName = (session.live ? "running" : "processes") + (images === count ? "" : `, in ${images} program images`);
  // Nothing runs any more: what was left is all that there is to say.
  const held = tree.live_bytes || !tree.left_bytes ? [["live", sizeText(tree.live_bytes)]] : [];
  if (tree.left_bytes) { held.push([session.live || processes.all().some((row) => row.in_tree) ? "left by ended" : "left at exit", sizeText(tree.left_bytes)]); }
  const parts = [...held, ["peak", sizeText(tree.peak_bytes)], ["total", sizeText(tree.total_bytes)], [countName, String(count)]];
  at("totals").replaceChildren(...parts.map(([name, value]) => {
    const box = document.createElement("div");
    const dt = document.createElement("dt");
    const dd = document.createElement("dd");
    dt.textContent = name;
    dd.textContent = value;
    box.append(dt, dd);
    return box;
  }));
}

function sayWarning(box, name, words) {
  const title = document.createElement("b");
  title.textContent = name;
  box.hidden = !words;
  if (words && !box.textContent.endsWith(` ${words}`)) { box.replaceChildren(title, ` ${words}`); }
}

// Whose events and whose memory the figures do not hold, in the report's words.
function sayMissing(dump) {
  const lost = (dump && dump.lost_forks) || 0;
  const words = lost === 1 ? "child could not be recorded: what it" : "children could not be recorded: what they";
  sayWarning(at("incomplete"), "NOT COMPLETE", lost && `${lost} forked ${words} allocated and freed is missing`);
  sayWarning(at("uncovered"), "NOT COVERED", dump && dump.uncovered);
}

// ---- views

function showTab() {
  for (const [name, , view] of TABS) { at(view).hidden = name !== state.tab; }
  at("profile-views").classList.toggle("beside", profile.isBeside());
  at("functions-view").hidden = state.tab !== "functions" && !profile.isBeside();
  for (const button of at("tabs").children) { button.setAttribute("aria-current", button.dataset.tab === state.tab); }
  at("profile-bar").hidden = !["", "functions"].includes(state.tab);
  for (const id of ["invert", "flip"]) { at(id).hidden = state.tab !== ""; }
}

function makeTabs() {
  TABS.forEach(([name, title], number) => {
    const button = document.createElement("button");
    button.textContent = title;
    button.dataset.tab = name;
    button.title = String(number + 1);
    button.onclick = () => change({ tab: name });
    at("tabs").append(button);
  });
  if (!TABS.some(([name]) => name === state.tab)) { state.tab = ""; }
}

function draw(changed) {
  showTab();
  processes.draw();
  profile.onState(changed);
  timeline.draw();
  memory.draw();
  growing.draw();
  lost.apply();
}

// ---- record and stop

function askHow(row) {
  return new Promise((done) => {
    const dialog = at("record");
    at("record-about").textContent = `Record ${row.name} ${row.pid} from now on, in a new, empty profile.`;
    at("record-bytes").value = String(row.sampling_bytes || session.sampling_bytes || 1);
    at("record-mode").value = row.stack_mode || "native";
    dialog.returnValue = "";
    dialog.onclose = () => done(dialog.returnValue === "start" ? { sampling_bytes: at("record-bytes").value.trim(), stack_mode: at("record-mode").value } : null);
    dialog.showModal();
  });
}

async function act(row) {
  if (lost.whyLost()) {
    say(`${row.name} ${row.pid}: ${lost.whyLost()}.`, true);
    return;
  }
  if (row.state !== "running") {
    say(`${row.name} ${row.pid} has ended: there is nothing to record or stop.`, true);
    return;
  }
  try {
    if (row.recording) {
      await api.post(`/api/v1/processes/${row.pid}/stop`);
      say(`${row.name} ${row.pid} is recorded no more; what was recorded stays.`);
      return;
    }
    const how = await askHow(row);
    if (how) {
      await api.post(api.query(`/api/v1/processes/${row.pid}/start`, how));
      say(`${row.name} ${row.pid} is recorded from now on.`);
    }
  } catch (error) {
    say(`${row.name} ${row.pid}: ${error.message}`, true);
  }
}

// ---- what memlog tells

function take(what) {
  processes.forget(what.unrecorded || []);
  processes.take([...what.processes, ...(what.unrecorded || [])], what.time_ms, what.tree);
  if (what.not_profiled) { processes.sayMissing(what.not_profiled); }
  timeline.take(what.time_ms, what.tree);
  sayTotals(what.tree);
  sayMissing(what.dump);
  processes.draw();
  timeline.draw();
  memory.draw();
  at("detail-title").textContent = profile.title();
  if (what.dumps !== known) {
    known = what.dumps;
    dumps.load().catch((error) => say(error.message, true));
  }
  uploads.take(what);
  if (!what.serving) { say("memlog-service does not serve just now: nothing is recorded.", true); }
  if (what.serving && !isServing) { say(""); }
  isServing = what.serving;
}

function followRun() {
  first.follow((name, event) => {
    if (name === "error") {
      if (!lost.whyLost()) {
        const since = api.timeText(Date.now());
        lost.setLost(`memlog does not answer since ${since}`);
        say(`The run has ended, or memlog does not answer, since ${since}. What was seen stays here and is live no more; memlog page ${session.folder} shows the dumps.`, true);
        processes.draw();
      }
      return;
    }
    if (lost.whyLost()) { lost.setLost(""); say(""); }
    take(JSON.parse(event.data));
  });
}

// Ended runs: their processes come with the dump that is looked at.
async function followDump() {
  const list = dumps.dumps();
  if (!list.length) { say("There are no dumps here.", true); return; }
  if (!state.dump) { change({ dump: list.at(-1).id }); }
  const answer = await api.get(api.query("/api/v1/processes", { dump: state.dump }));
  processes.take(answer.processes, Date.parse(answer.dump.time), answer.tree);
  processes.sayMissing(answer.dump.not_profiled || []);
  sayTotals(answer.tree);
  sayMissing(answer.dump);
  processes.draw();
  timeline.draw();
  memory.draw();
}

// ---- keys

const keys = {
  "/": () => { change({ tab: ["", "functions"].includes(state.tab) ? state.tab : "" }); at("search").focus(); },
  p: () => at("filter").focus(),
  j: () => processes.step(1),
  k: () => processes.step(-1),
  a: () => change({ pid: "", role: "" }),
  s: () => { const row = state.pid && processes.byPid(state.pid); if (row && session.live) { act(row); } },
  d: () => { if (session.live && !lost.whyLost()) { dumps.save(); } },
  r: () => (state.tab === "growing" ? growing.ask(true) : profile.load(true)),
  m: () => profile.nextMetric(),
  c: () => { if (state.tab === "") { profile.around(); } },
  i: () => at("invert").click(),
  f: () => at("flip").click(),
  l: () => profile.togglePlumbing(),
  t: () => theme(),
  "?": () => at("keys").showModal(),
};
TABS.forEach(([name], number) => { keys[String(number + 1)] = () => change({ tab: name }); });

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) { return; }
  const typing = ["INPUT", "SELECT", "TEXTAREA"].includes(event.target.tagName) && event.target.type !== "checkbox";
  if (typing && event.key === "Escape") { event.target.blur(); return; }
  const inGraph = event.target === at("graph") || event.target === document.body;
  if (typing || (state.tab === "" && inGraph && profile.key(event.key))) {
    if (!typing) { event.preventDefault(); }
    return;
  }
  if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
}

function theme() {
  const root = document.documentElement;
  root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
  profile.redraw();
  processes.draw();
  timeline.draw();
}

async function start() {
  document.documentElement.dataset.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  /* The cookie is set: the token need not stay in the address and the history. */
  if (location.search) { history.replaceState(null, "", location.pathname + location.hash); }
  session = await first.session;
  const [program = session.folder, ...words] = session.program;
  const name = [program.replace(/\/+$/, "").split("/").at(-1), ...words].join(" ").replace(/\s+/g, " ").slice(0, 200);
  at("title").textContent = name;
  document.title = `${name} \u2014 memlog`;
  at("about").textContent = session.live ? `--memlog=${session.mode}, since ${api.timeText(session.start_ms)}, dumps go to ${session.folder}` : `Ended runs in ${session.folder}`;
  document.body.classList.toggle("ended", !session.live);
  at("save").hidden = !session.live;
  makeTabs();
  processes.init(session.live, act);
  profile.init(session.live, say);
  dumps.init(say);
  timeline.init(session.live);
  memory.init(session.live);
  growing.init(session.live);
  uploads.init(Boolean(session.uploads), say);
  at("save").onclick = () => dumps.save();
  at("theme").onclick = theme;
  at("help").onclick = () => at("keys").showModal();
  document.addEventListener("keydown", onKey);
  profile.onWidth(() => { showTab(); profile.draw(); });
  window.addEventListener("resize", () => timeline.draw());
  onChange(draw);
  onChange((changed) => { if (!session.live && changed.includes("dump")) { followDump().catch((error) => say(error.message, true)); } });
  showTab();
  if (session.live) {
    followRun(); // its first word is how many dumps there are, and they are loaded then
  } else {
    await dumps.load();
    await followDump();
  }
  profile.draw();
  await profile.load(false);
}

start().catch((error) => say(error.message, true));
