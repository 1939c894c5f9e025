// Flame graph and table of functions of what is looked at: a process, a role or all; now, a dump, or the difference of two.
import { whyLost } from "./lost.js";
import { state, change, note } from "./state.js";
import { get, localText, timeText } from "./api.js";
import { early, order, question, showsProfile } from "./first.js";
import * as processes from "./processes.js";

const at = (id) => document.getElementById(id);
const ROLES = ["browser", "renderer", "gpu", "utility", "other"];
// What stands outside of the functions as frames, or inside of them; the analyzer's words (memlog flamegraph --by).
const ORDERS = [["", "By function"], ["type", "By type"], ["heap", "By heap"], ["heap,type", "Heap, type"], ["scope", "By scope"],
  ["backtrace,type", "Types inside"], ["backtrace,heap", "Heaps inside"], ["backtrace,scope", "Scopes inside"]];
// Tables that list what is outermost instead of functions: the title, and how many frames name a row.
const TABLES = { type: ["Type", 1], heap: ["Heap", 1], "heap,type": ["Heap and type", 2] };
const FOLLOW_MS = 5000;
const ROWS_MAX = 500;
const wide = matchMedia("(min-width: 1400px)"); // the functions stand beside the graph
let graph = null;
let data = null;
let shownAs = ""; // the question that `data` answers
let asking = null; // an AbortController
let timer = 0;
let live = true;
let say = () => {};

// What the data at hand knows.
const figures = () => figuresOf(data);
// Without a choice it is the figure that tells most: what is live, or the peak where nothing runs and hardly anything was left.
const metricOf = (text) => Math.max(0, text ? figures().indexOf(text.replace("-", " ")) : data ? data.metric : 0);

export function title() {
  const row = state.pid ? processes.byPid(state.pid) : null;
  return state.pid ? `${row ? row.name : "Process"} ${state.pid}` : state.role ? `Role ${state.role}` : "All processes";
}

export function init(isLive, onSay) {
  live = isLive;
  say = onSay;
  at("role").add(new Option("All roles", ""));
  ROLES.forEach((role) => at("role").add(new Option(role, role)));
  graph = new FlameGraph(at("graph"), onGraph, leave);
  ORDERS.forEach(([word, name]) => at("by").add(new Option(name, word)));
  at("by").onchange = () => change({ by: at("by").value, zoom: "" });
  at("metric").onchange = () => change({ metric: at("metric").value });
  at("role").onchange = () => change({ role: at("role").value, pid: "" });
  at("source").onchange = () => change({ dump: at("source").value });
  at("before").onchange = () => change({ before: at("before").value });
  at("invert").onclick = () => change({ invert: state.invert ? "" : "1", zoom: "" });
  at("plumbing").onclick = togglePlumbing;
  at("flip").onclick = () => change({ flame: state.flame ? "" : "1" });
  at("around").onclick = around;
  at("whole").onclick = leave;
  at("search").oninput = () => change({ search: at("search").value });
  at("refresh").onclick = () => load(true);
  at("follow").onchange = follow;
  at("by-own").onclick = () => change({ sort: "own" });
  at("by-all").onclick = () => change({ sort: "" });
  at("follow").parentElement.hidden = !live;
  new ResizeObserver(() => graph.draw()).observe(at("graph-box"));
  apply();
}

// The dumps that can be looked at or compared with.
export function offer(dumps) {
  const name = (one) => `${one.id} ${one.reason}, ${timeText(one.time_ms)}`;
  const fill = (select, first, value) => {
    select.replaceChildren(...first, ...dumps.map((one) => new Option(name(one), one.id)));
    select.value = value;
  };
  fill(at("source"), live ? [new Option("Now", "")] : [], state.dump);
  fill(at("before"), [new Option("Compare with \u2026", "")], state.before);
}

function apply() {
  if (at("metric").options.length !== figures().length) {
    at("metric").replaceChildren(...figures().map((name) => new Option(name[0].toUpperCase() + name.slice(1), name.replace(" ", "-"))));
  }
  at("metric").value = FIGURES[metricOf(state.metric)].replace(" ", "-");
  at("by").value = state.by;
  at("role").value = state.pid ? "" : state.role;
  at("source").value = state.dump;
  at("before").value = state.before;
  at("invert").setAttribute("aria-pressed", state.invert === "1");
  at("invert").disabled = Boolean(state.function);
  at("whole").classList.toggle("off", !state.function);
  at("flip").setAttribute("aria-pressed", state.flame === "1");
  at("plumbing").setAttribute("aria-pressed", state.plumbing === "1");
  if (at("search").value !== state.search) { at("search").value = state.search; }
  let path = [];
  try { path = JSON.parse(state.zoom || "[]"); } catch { path = []; }
  Object.assign(graph, { metric: metricOf(state.metric), invert: state.invert === "1", flip: state.flame === "1", plumbing: state.plumbing === "1", search: state.search, function: functionOf(state.function), path: Array.isArray(path) ? path : [] });
}

function onGraph() {
  at("where").textContent = graph.whereText();
  at("legend").textContent = graph.legendText();
  at("frame-name").textContent = graph.nameText();
  at("frame-figures").textContent = graph.figuresText();
  at("found").textContent = graph.foundText();
  at("search").setAttribute("aria-invalid", graph.searchError);
  at("around").disabled = !graph.chosenFunction();
  note({ zoom: graph.path.length ? JSON.stringify(graph.path) : "" });
}

export function draw() {
  at("detail-title").textContent = title();
  apply();
  if (!data) { return; }
  at("flame-view").classList.remove("empty");
  if (state.tab === "functions" || isBeside()) { if (shownAs === question()) { drawFunctions(); } }
  if (state.tab !== "functions" && showsProfile()) { graph.show(data); }
}

export const isBeside = () => wide.matches && state.tab === "";
export const onWidth = (call) => wide.addEventListener("change", call);

export async function load(force) {
  const asked = question();
  if (!showsProfile() || (!force && asked === shownAs) || (!live && !state.dump)) { return; }
  asking?.abort();
  const mine = new AbortController();
  asking = mine;
  const began = performance.now();
  at("flame-view").classList.toggle("waiting", asked !== shownAs);
  at("refresh").disabled = true;
  try {
    const answer = await (early(asked) || get(asked, mine.signal));
    if (mine.signal.aborted) { return; }
    const isFirst = !data;
    data = answer;
    shownAs = asked;
    sayAbout(localText(answer.about) + (processes.isIdle() && live && !state.dump ? ". No process is being recorded: Record beside one starts it." : ""));
    draw();
    if (isFirst) { markFirst(); }
  } catch (error) {
    if (mine.signal.aborted) { return; }
    if (asked !== shownAs) { clear(); } // what is drawn is somebody else's
    shownAs = "";
    sayAbout(whyNothing() || error.message, true);
    at("follow").checked = at("follow").checked && !/has the run ended/.test(error.message);
  } finally {
    if (asking === mine) {
      asking = null;
      at("flame-view").classList.remove("waiting");
      at("refresh").disabled = Boolean(whyLost());
      again(performance.now() - began);
    }
  }
}

function sayAbout(text, isBad) {
  at("profile-about").textContent = text;
  at("profile-about").classList.toggle("bad", Boolean(isBad));
}

function clear() {
  data = null;
  at("flame-view").classList.add("empty");
  at("functions").replaceChildren();
  for (const id of ["where", "legend", "frame-name", "frame-figures", "found"]) { at(id).textContent = ""; }
}

// A process that runs and was never recorded has no profile.
function whyNothing() {
  const row = state.pid && !state.dump && !state.before ? processes.byPid(state.pid) : null;
  if (!row || row.recording || row.state !== "running") { return ""; }
  return `${row.name} ${row.pid} is not recorded${row.note ? ` (${row.note})` : ""}: Record beside it (s) shows what it allocates from then on.`;
}

// When it was seen, for tools/dev/page_cost: behind the frame that draws it.
function markFirst() {
  requestAnimationFrame(() => setTimeout(() => performance.mark("first flame graph")));
}

// The next look; one that takes long is not taken often.
function again(took) {
  clearTimeout(timer);
  if (live && at("follow").checked && !state.dump && showsProfile()) {
    timer = setTimeout(() => document.hidden ? again(0) : load(true), Math.max(FOLLOW_MS, 5 * took));
  }
}

function follow() { if (at("follow").checked) { load(true); } else { clearTimeout(timer); } }

export function onState(changed) {
  const asks = ["pid", "role", "by", "dump", "before", "tab"].some((key) => changed.includes(key));
  if (changed.some((key) => ["pid", "role"].includes(key))) { state.zoom = changed.includes("zoom") ? state.zoom : ""; }
  draw();
  if (asks) { load(false); }
}

// Callers and callees of one function: of the frame that is looked at; looked at already, the whole again.
const lookAround = (one) => change({ tab: "", function: functionText(one), zoom: "" });
const leave = () => lookAround(null);

export function around() {
  const chosen = data && graph.chosenFunction();
  if (chosen || state.function) { lookAround(chosen); }
}

export const shown = () => graph; // what tests compare figures with
export const key = (name) => graph.key(name);
export const nextMetric = () => change({ metric: FIGURES[(metricOf(state.metric) + 1) % figures().length].replace(" ", "-") });
export const togglePlumbing = () => change({ plumbing: state.plumbing ? "" : "1", zoom: "" });
export const redraw = () => graph.draw();

// ---- functions: what each holds itself, and with all that it called; a recursive one counts once a stack. Or types and heaps: what
// stands outermost, which calls nobody.

function functionsOf(metric) {
  const sums = new Map();
  const view = data.views[0];
  const nameOf = (frame) => data.names[data.frames[3 * frame + 1]];
  const moduleOf = (frame) => data.names[data.frames[3 * frame + 2]];
  const outermost = TABLES[order()] ? TABLES[order()][1] : 0;
  const add = (side, sign) => graph.eachStack(view, side, (path, figures) => {
    const seen = new Set();
    if (outermost) {
      const names = path.slice(-outermost).reverse().map(nameOf);
      const name = names.join(" / ");
      const one = sums.get(name) || { name, names, module: "", own: 0, all: 0 };
      one.own += sign * figures[metric];
      one.all = one.own;
      sums.set(name, one);
      return;
    }
    path.forEach((frame, depth) => {
      const id = nameOf(frame) + "\n" + moduleOf(frame);
      if (seen.has(id)) { return; }
      seen.add(id);
      let one = sums.get(id);
      if (!one) { one = { name: nameOf(frame), module: moduleOf(frame), own: 0, all: 0 }; sums.set(id, one); }
      one.all += sign * figures[metric];
      if (depth === 0) { one.own += sign * figures[metric]; }
    });
  });
  graph.data = data;
  add("values", 1);
  if (view.before) { add("before", -1); }
  return [...sums.values()];
}

function drawFunctions() {
  const metric = metricOf(state.metric);
  const isDiff = data.views[0].before !== undefined;
  let pattern = null;
  try { pattern = state.search ? new RegExp(state.search, "i") : null; } catch { pattern = null; }
  const list = functionsOf(metric).filter((one) => !pattern || pattern.test(one.name) || pattern.test(one.module));
  const by = state.sort === "own" ? "own" : "all";
  list.sort((a, b) => Math.abs(b[by]) - Math.abs(a[by]) || b.own - a.own);
  const total = functionsTotal(metric);
  at("by-own").setAttribute("aria-pressed", by === "own");
  at("by-all").setAttribute("aria-pressed", by === "all");
  const table = TABLES[order()];
  at("row-title").textContent = table ? table[0] : "Function";
  at("by-own").textContent = table ? "Holds" : "Itself";
  at("functions-view").classList.toggle("groups", Boolean(table));
  if (state.tab === "functions") { at("found").textContent = `${countText(list.length)} ${table ? "rows" : "functions"}`; }
  const focused = document.activeElement.closest?.("#functions tr")?.dataset.of;
  const text = (value) => (isDiff && value > 0 ? "+" : "") + figureText(value, metric);
  at("functions").replaceChildren(...list.slice(0, ROWS_MAX).map((one) => {
    const tr = document.createElement("tr");
    const button = document.createElement("button");
    tr.dataset.of = functionText(one);
    tr.classList.toggle("chosen", tr.dataset.of === state.function);
    button.className = "link";
    button.textContent = one.name;
    button.title = table ? "Show it in the flame graph" : "Its callers and callees";
    button.onclick = () => table ? change({ tab: "", zoom: JSON.stringify(one.names), by: order(), function: "" }) : lookAround(one);
    const cells = [button, one.module, text(one.own), text(one.all), shareText(Math.abs(one[by]), total)].map((content, number) => {
      const td = document.createElement("td");
      td.className = ["", "wide", "number", "number", "number wide"][number];
      td.append(content);
      return td;
    });
    tr.append(...cells);
    return tr;
  }));
  if (focused) { [...at("functions").rows].find((row) => row.dataset.of === focused)?.querySelector("button").focus({ preventScroll: true }); }
}

function functionsTotal(metric) {
  const sum = (side) => { let all = 0; graph.eachStack(data.views[0], side, (_, figures) => { all += figures[metric]; }); return all; };
  return Math.max(sum("values"), data.views[0].before ? sum("before") : 0);
}
