// What was live, allocated, resident and private when, with marks; a span tells what grew in it. memlog remembers it from each process's
// start on; what came since it was asked is drawn from events.
import { state, change } from "./state.js";
import { clockText, get, query, timeText, zoneText } from "./api.js";
import * as processes from "./processes.js";
import { dumps } from "./dumps.js";

const at = (id) => document.getElementById(id);
const POINTS_MAX = 7200;
const ASK_AGAIN_MS = 120000; // what came since is drawn from events meanwhile, of which a process remembers fewer
const SHOWN_MAX = 20;
const MARK_TEXT_PX = 90;
const MARKS_APART_PX = 6; // nearer ones are one line
const tree = []; // { t, live, total, resident, privately } since the page was opened
let memory = null; // /api/v1/memory/history's answer
let recorded = null; // /api/v1/timeline's answer
let recordedOf = null; // the dump and the process that it is of
let recordedAt = 0;
let asking = false;
let trouble = "";
let spanAsked = "";
let plot = null;
let plotOf = "";
let library = null; // uPlot, brought when it is looked at first
let isBrought = false;
let live = true;
let dragging = false;
const ROOM_ABOVE = 1.05;
const RATE = 4; // its series
let isRateShown = false;

export function init(isLive) {
  live = isLive;
  at("chart").addEventListener("mousedown", () => { dragging = true; });
  window.addEventListener("mouseup", () => { dragging = false; });
}

function bring() {
  const part = (element) => new Promise((done) => { element.onload = done; element.onerror = done; document.head.append(element); });
  library ||= Promise.all([
    part(Object.assign(document.createElement("link"), { rel: "stylesheet", href: "/uplot.css" })),
    part(Object.assign(document.createElement("script"), { src: "/uplot.js" })),
  ]).then(() => { isBrought = true; draw(); });
}

export function take(time, totals) {
  const rows = processes.all();
  const sum = (name) => rows.reduce((all, row) => all + (row.state === "running" ? row[name] || 0 : 0), 0);
  tree.push({ t: time, live: sum("live_bytes"), total: totals.total_bytes, resident: sum("resident_bytes"), privately: sum("footprint_bytes") });
  if (tree.length > POINTS_MAX) { tree.shift(); }
}

const dumpOf = () => (live ? "" : state.dump);

// Ask for what is remembered, when it is looked at.
async function ask() {
  const [dump, pid] = [dumpOf(), state.pid];
  const of = `${dump} ${pid}`;
  const isFresh = recordedOf === of && (!live || Date.now() - recordedAt < ASK_AGAIN_MS);
  if (asking || isFresh || (!live && !dump)) { return; }
  asking = true;
  try {
    recorded = await get(query("/api/v1/timeline", { dump, pid }));
    trouble = "";
  } catch (error) {
    if (recordedOf !== of) { recorded = null; }
    trouble = error.message;
  }
  memory = live ? await get(query("/api/v1/memory/history", { pid })).catch(() => null) : null;
  asking = false;
  recordedOf = of;
  recordedAt = Date.now();
  draw();
}

const entries = () => (recorded?.processes || []).filter((one) => !state.pid || String(one.pid) === state.pid);

// A slot's last value at its end; a peak within it at its middle.
function fromSlots(series, out) {
  let [before, start, total] = [0, series.from_ms, 0];
  out.push({ t: start, live: series.points[0][1] });
  for (const [end, , most, last, allocated] of series.points) {
    if (most > Math.max(before, last) * 1.01) { out.push({ t: (start + end) / 2, live: most }); }
    out.push({ t: end, live: last, rate: allocated >= total && end > start ? 1000 * (allocated - total) / (end - start) : null });
    [before, start, total] = [last, end, allocated];
  }
}

// A reading at its time; more than that, known to have been there since the reading before, at the middle.
function fromMemory(series, out) {
  let before = null;
  for (const [t, mostResident, resident, mostPrivate, privately] of series.points) {
    if (before && (mostResident > 1.01 * Math.max(before.resident, resident) || mostPrivate > 1.01 * Math.max(before.privately, privately))) {
      out.push({ t: (before.t + t) / 2, resident: mostResident, privately: mostPrivate });
    }
    before = { t, resident, privately };
    out.push(before);
  }
}

// What was seen since the slots and the readings end; the first point's rate needs one before.
function fromEvents(seen, since, read, out) {
  let before = null;
  for (const one of seen) {
    const point = { t: one.t };
    if (one.t > read) { Object.assign(point, { resident: one.resident || undefined, privately: one.privately || undefined }); }
    if (one.t > since) {
      point.live = one.live;
      point.rate = before && one.t > before.t && one.total >= before.total ? 1000 * (one.total - before.total) / (one.t - before.t) : null;
    }
    if (one.t > Math.min(since, read)) { out.push(point); }
    before = one;
  }
}

function remembered(row) {
  if (!memory) { return []; }
  return state.pid ? memory.processes.filter((one) => !row || one.id === row.id) : memory.tree ? [memory.tree] : [];
}

function points() {
  const out = [];
  const row = state.pid ? processes.byPid(state.pid) : null;
  const seen = !live ? [] : row ? processes.history().get(row.id)?.history || [] : tree;
  const slots = state.pid ? entries().filter((one) => !row || one.id === row.id) : recorded?.tree ? [recorded.tree] : [];
  for (const series of slots) { fromSlots(series, out); }
  const until = out.length ? out.at(-1).t : 0;
  const readings = [];
  for (const series of remembered(row)) { fromMemory(series, readings); }
  fromEvents(seen, until, readings.length ? readings.at(-1).t : 0, out);
  return [...out, ...readings].sort((a, b) => a.t - b.t);
}

// A series has no figure at the times of others: the nearest one that it has.
function nearest(chart, series, at) {
  const values = chart.data[series];
  for (let away = 0; away < values.length; away++) {
    for (const place of [at - away, at + away]) { if (values[place] !== undefined && values[place] !== null) { return place; } }
  }
  return at;
}

// Dumps, and who came and went.
function marks() {
  const of = state.pid ? entries() : recorded?.processes || [];
  const all = dumps().map((one) => ({ t: one.time_ms, kind: "", what: "dumps", text: `dump ${one.id} ${one.reason}` }));
  const becoming = new Set(); // by exec: the next image is the same process
  for (const one of [...of].sort((a, b) => a.from_ms - b.from_ms)) {
    if (!becoming.delete(one.pid)) { all.push({ t: one.from_ms, kind: "+ ", what: "processes", text: `+ ${one.name} ${one.pid}` }); }
    if (one.state === "replaced") {
      becoming.add(one.pid);
    } else if (one.state !== "running") { all.push({ t: one.points.at(-1)[0], kind: "\u2212 ", what: "processes", text: `\u2212 ${one.name} ${one.pid}` }); }
  }
  return all.sort((a, b) => a.t - b.t);
}

// One by its name, several of a kind by their number.
export function markText(group) {
  const kinds = ["", "+ ", "\u2212 "].map((kind) => group.filter((one) => one.kind === kind)).filter((some) => some.length);
  return kinds.map((some) => (some.length === 1 ? some[0].text : `${some[0].kind}${some.length} ${some[0].what}`)).join(", ");
}

// Those that would lie on each other are one mark: [{ x, text }].
function groupedMarks(chart) {
  const groups = [];
  for (const mark of marks()) {
    const x = chart.valToPos(mark.t / 1000, "x", true);
    if (x < chart.bbox.left || x > chart.bbox.left + chart.bbox.width) { continue; }
    if (!groups.length || x - groups.at(-1).x > MARKS_APART_PX * devicePixelRatio) { groups.push({ x, of: [] }); }
    groups.at(-1).of.push(mark);
  }
  return groups.map((group) => ({ x: group.x, text: markText(group.of) }));
}

function drawMarks(chart) {
  const pen = chart.ctx;
  const style = getComputedStyle(document.documentElement);
  let free = -Infinity;
  pen.save();
  pen.strokeStyle = style.getPropertyValue("--faint");
  pen.fillStyle = style.getPropertyValue("--faint");
  pen.setLineDash([4, 4]);
  pen.textAlign = "left";
  pen.textBaseline = "alphabetic";
  const shown = groupedMarks(chart);
  for (const { x, text } of shown) {
    pen.beginPath();
    pen.moveTo(x, chart.bbox.top);
    pen.lineTo(x, chart.bbox.top + chart.bbox.height);
    pen.stroke();
    if (x > free) {
      pen.fillText(text, x + 3, chart.bbox.top + 12);
      free = x + Math.max(MARK_TEXT_PX, pen.measureText(text).width + 8);
    }
  }
  pen.restore();
  at("chart").dataset.marks = shown.map((one) => one.text).join("; ");
}

// ---- a span

function changeItem(one) {
  const item = document.createElement("li");
  const size = document.createElement("b");
  size.textContent = `${one.grown_bytes > 0 ? "+" : "\u2212"}${sizeText(Math.abs(one.grown_bytes))}${one.at_least ? " at least" : ""}`;
  const name = document.createElement("button");
  name.className = "link";
  name.textContent = one.function;
  name.title = one.frames.map((frame) => frame.function || frame.module).slice(0, 12).join("\n");
  name.onclick = () => change({ pid: one.pid, search: one.function, tab: "" });
  item.append(size, " ", name, ` in ${one.name} ${one.pid}`);
  return item;
}

function sayList(title, rows) {
  const head = document.createElement("h3");
  head.textContent = title;
  const list = document.createElement("ul");
  list.append(...rows.slice(0, SHOWN_MAX).map(changeItem));
  return [head, list];
}

function saySpan(answer) {
  const time = timeText;
  const about = document.createElement("p");
  const grown = answer.changed.filter((one) => one.grown_bytes > 0);
  const shrunk = answer.changed.filter((one) => one.grown_bytes < 0).reverse();
  about.textContent = `${time(answer.from_ms)} to ${time(answer.to_ms)}, of the stacks that hold most.`;
  const parts = [about];
  if (grown.length) { parts.push(...sayList("What grew", grown)); }
  if (shrunk.length) { parts.push(...sayList("What shrank", shrunk)); }
  // Held in between and freed again: as large as it was.
  const passed = (answer.passed || []).filter((one) => one.most_bytes * 100 > answer.passed[0].most_bytes).map((one) => ({ ...one, grown_bytes: one.most_bytes }));
  if (passed.length) { parts.push(...sayList("What came and went", passed)); }
  if (parts.length === 1) { about.textContent += " None of them changed."; }
  at("span").replaceChildren(...parts);
  at("span").dataset.of = state.span;
}

async function askSpan() {
  const [from, to] = state.span.split("-").map(Number);
  const key = `${state.span} ${state.pid} ${dumpOf()}`;
  if (key === spanAsked || (!live && !state.dump)) { return; }
  spanAsked = key;
  if (!(to > from)) { at("span").replaceChildren(); return; }
  at("span").classList.add("waiting");
  try {
    const answer = await get(query("/api/v1/timeline", { from, to, pid: state.pid, points: 2, dump: dumpOf() }));
    if (key === spanAsked) { saySpan(answer); }
  } catch (error) {
    if (key === spanAsked) { at("span").replaceChildren(Object.assign(document.createElement("p"), { className: "bad", textContent: error.message })); }
  }
  at("span").classList.toggle("waiting", key !== spanAsked);
}

// ---- the chart

// What is dragged over, in ms.
const spanOf = (chart) => [chart.select.left, chart.select.left + chart.select.width].map((x) => 1000 * chart.posToVal(x, "x"));

function make(box) {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name);
  const value = (_, bytes) => (bytes === null || bytes === undefined ? "" : sizeText(Math.round(bytes)));
  const axis = { stroke: colour("--faint"), labelSize: 18, labelFont: "12px system-ui, sans-serif", grid: { stroke: colour("--line") }, ticks: { stroke: colour("--line") } };
  const sizes = { ...axis, size: 80, incrs: Array.from({ length: 45 }, (_, power) => 2 ** power), values: (_, values) => values.map((bytes) => sizeText(bytes)) };
  const isNarrow = box.clientWidth < 600;
  const MINUTE_S = 60;
  const times = (_, seconds, __, ___, step) => seconds.map((at) => clockText(1000 * at).slice(0, step < MINUTE_S ? 8 : 5));
  const points = { show: false };
  const stepped = uPlot.paths.stepped({ align: -1 }); // a point's rate is that of the time before it
  return new uPlot({
    width: box.clientWidth, height: 280,
    cursor: { drag: { setScale: false }, dataIdx: nearest },
    series: [
      { label: "Time", value: (_, at) => (at === null ? "" : timeText(1000 * at)) },
      { label: "live", stroke: colour("--accent"), fill: colour("--accent") + "22", width: 2, value, points },
      { label: "private", stroke: colour("--text"), width: 1, spanGaps: true, value, points },
      { label: "resident", stroke: colour("--faint"), width: 1, spanGaps: true, value, points },
      // A click on its name shows it: a rate jumps, and would hide what is calm.
      { label: "allocated a second", show: isRateShown, stroke: colour("--good"), width: 1, dash: [2, 3], spanGaps: true, scale: "rate", value, paths: stepped, points },
    ],
    axes: [
      { ...axis, label: zoneText(Date.now()), space: isNarrow ? 100 : 75, values: times },
      { ...sizes, label: isNarrow ? undefined : "bytes" },
      { ...sizes, label: "bytes a second", scale: "rate", side: 1, grid: { show: false }, show: !isNarrow && isRateShown },
    ],
    scales: { y: { range: (_, low, high) => [0, ROOM_ABOVE * high || 1] }, rate: { range: (_, low, high) => [0, high || 1] } },
    hooks: {
      draw: [drawMarks, (chart) => { box.dataset.from = 1000 * chart.scales.x.min; box.dataset.to = 1000 * chart.scales.x.max; }],
      setSeries: [(chart) => {
        if (isRateShown !== chart.series[RATE].show) {
          isRateShown = chart.series[RATE].show;
          plotOf = ""; // its axis comes and goes with it
          requestAnimationFrame(draw);
        }
      }],
      setCursor: [(chart) => {
        if (dragging && chart.select.width > 2) {
          const [from, to] = spanOf(chart);
          at("timeline-about").textContent = `${timeText(from)} to ${timeText(to)}: ${((to - from) / 1000).toFixed(1)} s`;
        }
      }],
      setSelect: [(chart) => {
        if (chart.select.width > 2) {
          const [from, to] = spanOf(chart);
          change({ span: `${Math.round(from)}-${Math.round(to)}` });
        }
      }],
    },
  }, [[], [], [], [], []], box);
}

// The span that the address names stays where its time is.
function showSpan() {
  const [from, to] = state.span.split("-").map(Number);
  if (dragging) { return; }
  if (!(to > from)) { plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false); return; }
  const within = (t) => Math.min(Math.max(plot.valToPos(t / 1000, "x"), 0), plot.over.clientWidth);
  const left = within(from);
  plot.setSelect({ left, width: within(to) - left, top: 0, height: plot.over.clientHeight }, false);
}

function about() {
  if (trouble && !recorded) { return trouble; }
  const hint = "Drag over a span to see what grew in it.";
  return recorded ? `What was live${memory ? ", private and resident" : ""}, from the start on; what is long ago, more coarsely. ${hint}` : asking ? "Asking what was live \u2026" : hint;
}

export const shown = () => plot; // what tests compare figures with

export function draw() {
  if (state.tab !== "timeline") { return; }
  ask();
  bring();
  if (!isBrought) {
    at("timeline-about").textContent = about();
  } else if (typeof uPlot === "undefined") {
    at("timeline-about").textContent = trouble || "There is no chart: npm could not bring its library when this memlog was built.";
  } else {
    const box = at("chart");
    const of = `${document.documentElement.dataset.theme} ${box.clientWidth}`;
    if (plotOf !== of) { plot?.destroy(); plot = make(box); plotOf = of; }
    const list = points();
    const column = (name) => list.map((one) => one[name]); // undefined: another series' time, and no gap in the line
    plot.setData([list.map((one) => one.t / 1000), column("live"), column("privately"), column("resident"), column("rate")]);
    showSpan();
    at("timeline-about").textContent = about();
  }
  askSpan();
}
