// Live and resident bytes since the page was opened, with marks; a span tells what grew in it.
import { state, change } from "./state.js";
import * as processes from "./processes.js";
import { dumps } from "./dumps.js";

const at = (id) => document.getElementById(id);
const POINTS_MAX = 7200;
const tree = []; // { t, live, resident }
const marks = []; // { t, text }
let plot = null;
let plotOf = "";
const running = new Map(); // id -> state as last seen

export function take(time, totals) {
  const rows = processes.all();
  const resident = rows.reduce((sum, row) => sum + (row.state === "running" ? row.resident_bytes || 0 : 0), 0);
  tree.push({ t: time, live: totals.live_bytes, resident });
  if (tree.length > POINTS_MAX) { tree.shift(); }
  for (const row of rows) {
    const before = running.get(row.id);
    if (running.size && before === undefined && row.state === "running" && tree.length > 1) { marks.push({ t: time, text: `+ ${row.name} ${row.pid}` }); }
    if (before === "running" && row.state !== "running") { marks.push({ t: time, text: `\u2212 ${row.name} ${row.pid}` }); }
    running.set(row.id, row.state);
  }
}

const points = () => {
  const row = state.pid ? processes.byPid(state.pid) : null;
  return row ? processes.history().get(row.id).history : tree;
};

function drawMarks(chart) {
  const pen = chart.ctx;
  const style = getComputedStyle(document.documentElement);
  const all = [...marks, ...dumps().map((one) => ({ t: one.time_ms, text: `dump ${one.id}` }))];
  pen.save();
  pen.strokeStyle = style.getPropertyValue("--faint");
  pen.fillStyle = style.getPropertyValue("--faint");
  pen.setLineDash([4, 4]);
  for (const mark of all) {
    const x = chart.valToPos(mark.t / 1000, "x", true);
    if (x < chart.bbox.left || x > chart.bbox.left + chart.bbox.width) { continue; }
    pen.beginPath();
    pen.moveTo(x, chart.bbox.top);
    pen.lineTo(x, chart.bbox.top + chart.bbox.height);
    pen.stroke();
    pen.fillText(mark.text, x + 3, chart.bbox.top + 12);
  }
  pen.restore();
}

// What each process held at the two ends of a span.
function saySpan(from, to) {
  const box = at("span");
  const valueAt = (history, t) => { let found = null; for (const point of history) { if (point.t <= t) { found = point; } } return found ? found.live : 0; };
  const rows = [...processes.history().values()]
    .map((one) => ({ row: one.row, grew: valueAt(one.history, to) - valueAt(one.history, from) }))
    .filter((one) => one.grew !== 0)
    .sort((a, b) => Math.abs(b.grew) - Math.abs(a.grew));
  const head = document.createElement("p");
  const time = (t) => new Date(t).toLocaleTimeString();
  head.textContent = `${time(from)} to ${time(to)}: ${rows.length ? "what grew" : "nothing grew"}`;
  const list = document.createElement("ul");
  for (const one of rows.slice(0, 20)) {
    const item = document.createElement("li");
    const button = document.createElement("button");
    button.className = "link";
    button.textContent = `${one.row.name} ${one.row.pid}`;
    button.onclick = () => change({ pid: one.row.pid, tab: "" });
    item.append(button, ` ${one.grew > 0 ? "+" : ""}${sizeText(one.grew)}`);
    list.append(item);
  }
  box.replaceChildren(head, list);
}

function make(box) {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name);
  const axis = { stroke: colour("--faint"), grid: { stroke: colour("--line") }, ticks: { stroke: colour("--line") } };
  return new uPlot({
    width: box.clientWidth, height: 280,
    cursor: { drag: { setScale: false } },
    series: [
      {},
      { label: "live", stroke: colour("--accent"), fill: colour("--accent") + "22", width: 2, value: (_, value) => value === null || value === undefined ? "" : sizeText(value) },
      { label: "resident", stroke: colour("--faint"), width: 1, value: (_, value) => value === null || value === undefined ? "" : sizeText(value) },
    ],
    axes: [axis, { ...axis, size: 80, incrs: Array.from({ length: 45 }, (_, power) => 2 ** power), values: (_, values) => values.map(sizeText) }],
    scales: { y: { range: (_, low, high) => [0, high || 1] } },
    hooks: {
      draw: [drawMarks],
      setSelect: [(chart) => {
        if (chart.select.width > 2) {
          const from = 1000 * chart.posToVal(chart.select.left, "x");
          const to = 1000 * chart.posToVal(chart.select.left + chart.select.width, "x");
          change({ span: `${Math.round(from)}-${Math.round(to)}` });
        }
      }],
    },
  }, [[], [], []], box);
}

export function draw() {
  if (state.tab !== "timeline") { return; }
  if (typeof uPlot === "undefined") {
    at("timeline-about").textContent = "There is no chart: npm could not bring its library when this memlog was built.";
    return;
  }
  const box = at("chart");
  const theme = document.documentElement.dataset.theme;
  const of = `${theme} ${box.clientWidth}`;
  if (plotOf !== of) { plot?.destroy(); plot = make(box); plotOf = of; }
  const list = points();
  plot.setData([list.map((one) => one.t / 1000), list.map((one) => one.live), list.map((one) => one.resident || null)]);
  at("timeline-about").textContent = "Since this page was opened. Drag over a span to see what grew in it.";
  const [from, to] = state.span.split("-").map(Number);
  if (to > from) { saySpan(from, to); } else { at("span").replaceChildren(); }
}
