// What private memory is made of: a bar for each process that adds up to it, a stacked chart of the readings, and who holds a component.
import { state, change } from "./state.js";
import { get, getText, query, timeText } from "./api.js";
import { dumps } from "./dumps.js";

const at = (id) => document.getElementById(id);
const ASK_MS = 10000;
const READINGS_MAX = 1500;
const DUMPS_MAX = 24; // of an ended run, for the chart
const ROWS_MAX = 20;
const UNREAD = "not read";
const ABOUT = {
  heap: "Live blocks, where their pages are resident.",
  "allocator slack": "The rest of the pages on which blocks lie, and an allocator's other pages: freed blocks, headers, fragments.",
  "inherited heap": "Of a forked process: of what its allocator keeps beside its own blocks, at most what its parent's blocks take.",
  code: "Of files, executable.",
  data: "Of files, written to, with .bss.",
  files: "Of files, the rest.",
  "shared memory": "Shared memory without a file of a disk, as far as no other process has it.",
  stacks: "The stacks of threads.",
  memlog: "The profiler's own.",
  mapped: "Mapped by the program itself, by a known stack: heaps of runtimes, pools, generated code.",
  "other anonymous": "Mapped before memlog or past it. Nobody here knows for what.",
  [UNREAD]: "Private memory whose mappings were not read.",
};
let live = true;
let readings = []; // by time
let last = 0; // the number of the latest that memlog told
let asking = false;
let asked = 0;
let trouble = "";
const ofDump = new Map(); // id -> its reading
let stacksOf = "";

export function init(isLive) {
  live = isLive;
  at("memory-of-heap").onclick = () => change({ tab: "" });
}

const hue = (number) => `hsl(${(number * 137.5 + 210) % 360} 55% 62%)`;
const colour = (name, number) => (name === UNREAD ? "var(--faint)" : hue(number));

// Every component, and what was not read.
const namesOf = (reading) => [...reading.components, UNREAD];
const valuesOf = (one) => [...one.values, one.unread_bytes];

// The one whose figures are shown, and all for the chart.
const shown = () => (live ? readings.at(-1) : ofDump.get(state.dump));
const entryOf = (reading) => (state.pid ? reading.processes.find((one) => String(one.pid) === state.pid) : reading.running ? reading.tree : null);

// ---- asking

async function askRun() {
  const answer = await get(query("/api/v1/memory", { after: last || "" }));
  if (answer.last < last) { readings = []; }
  last = answer.last;
  readings.push(...answer.readings);
  readings.splice(0, Math.max(0, readings.length - READINGS_MAX));
}

// The one that is looked at comes first.
async function askDumps() {
  const wanted = new Set([state.dump, ...dumps().slice(-DUMPS_MAX).map((one) => one.id)].filter((id) => id && !ofDump.has(id)));
  for (const id of wanted) {
    try {
      ofDump.set(id, await get(query("/api/v1/memory", { dump: id })));
    } catch (error) {
      if (id === state.dump) { throw error; } // another one, which cannot be read, is missing in the chart
      continue;
    }
    readings = [...ofDump.values()].filter((one) => one.running).sort((a, b) => a.time_ms - b.time_ms);
    show();
  }
}

async function ask() {
  const isDue = live ? Date.now() - asked >= ASK_MS : Boolean(state.dump) && !ofDump.has(state.dump);
  if (asking || !isDue || document.hidden) { return; }
  asking = true;
  asked = Date.now();
  try {
    await (live ? askRun() : askDumps());
    trouble = "";
  } catch (error) {
    trouble = error.message;
  }
  asking = false;
  show();
}

// ---- bars

function choose(name, pid) {
  change({ component: state.component === name && String(pid) === state.pid ? "" : name, pid: pid || "" });
}

function bar(one, names, most) {
  const box = document.createElement("div");
  box.className = "parts";
  box.style.width = `${Math.max(2, 100 * one.private_bytes / (most || 1))}%`;
  valuesOf(one).forEach((bytes, number) => {
    if (!bytes) { return; }
    const part = document.createElement("button");
    const words = `${names[number]}: ${sizeText(bytes)}, ${shareText(bytes, one.private_bytes)}`;
    part.style.flexGrow = bytes;
    part.dataset.bytes = bytes;
    part.style.background = colour(names[number], number);
    part.title = words;
    part.setAttribute("aria-label", `${words}${one.name ? ` of ${one.name} ${one.pid}` : ""}`);
    part.setAttribute("aria-pressed", state.component === names[number] && String(one.pid || "") === state.pid);
    part.textContent = bytes * 8 > one.private_bytes ? names[number] : "";
    part.onclick = () => choose(names[number], one.pid);
    box.append(part);
  });
  return box;
}

function barRow(one, names, most) {
  const row = document.createElement("tr");
  const [who, size, made] = [0, 1, 2].map(() => row.insertCell());
  const name = document.createElement("button");
  name.className = "link";
  name.textContent = one.name ? `${one.name} ${one.pid}` : "All that run";
  name.onclick = () => change({ pid: one.pid && String(one.pid) !== state.pid ? one.pid : "" });
  who.append(name);
  size.className = "number";
  size.textContent = sizeText(one.private_bytes);
  size.title = one.notes;
  made.append(bar(one, names, most));
  row.classList.toggle("chosen", Boolean(one.pid) && String(one.pid) === state.pid);
  return row;
}

// Rows are made anew, so the focus goes to the one that took its place.
function keepFocus(box, work) {
  const all = () => [...box.querySelectorAll("button")];
  const place = all().indexOf(document.activeElement);
  work();
  if (place >= 0) { all()[place]?.focus(); }
}

function drawBars(reading) {
  const names = namesOf(reading);
  const rows = [...(reading.running && reading.processes.length > 1 ? [reading.tree] : []), ...reading.processes.slice(0, ROWS_MAX)];
  const chosen = state.pid && reading.processes.find((one) => String(one.pid) === state.pid);
  if (chosen && !rows.includes(chosen)) { rows.push(chosen); }
  const most = Math.max(...rows.map((one) => one.private_bytes), 1);
  const body = at("memory-bars").tBodies[0];
  keepFocus(body, () => body.replaceChildren(...rows.map((one) => barRow(one, names, most))));
}

// ---- the chart

function svg(name, attributes) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) { element.setAttribute(key, value); }
  return element;
}

function area(points, lower, upper, x, y) {
  const way = [...points.map((point, i) => `${x(point.t)},${y(upper[i])}`), ...points.map((point, i) => `${x(point.t)},${y(lower[i])}`).reverse()];
  return `M${way.join("L")}Z`;
}

// Readings of a time; those without the process that is looked at are left out.
const pointsOf = () => readings.map((reading) => ({ t: reading.time_ms, entry: entryOf(reading) })).filter((point) => point.entry);

function drawChart(reading) {
  const [width, height] = [1000, 200];
  const points = pointsOf();
  const box = at("memory-chart");
  at("memory-chart-title").hidden = false;
  if (points.length < 2) {
    box.replaceChildren(Object.assign(document.createElement("p"), { className: "faint", textContent: live ? "The next reading begins the chart." : "There is one reading: no chart." }));
    return;
  }
  const names = namesOf(reading);
  const most = Math.max(...points.map((point) => point.entry.private_bytes), 1);
  const [from, to] = [points[0].t, points.at(-1).t];
  const x = (t) => (width * (t - from) / (to - from || 1)).toFixed(1);
  const y = (bytes) => (height - height * bytes / most).toFixed(1);
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img" });
  let lower = points.map(() => 0);
  names.forEach((name, number) => {
    const upper = points.map((point, i) => lower[i] + valuesOf(point.entry)[number]);
    if (upper.some((value, i) => value > lower[i])) {
      const path = svg("path", { d: area(points, lower, upper, x, y), fill: colour(name, number), "data-component": name });
      path.append(Object.assign(svg("title", {}), { textContent: name }));
      path.onclick = () => choose(name, state.pid);
      picture.append(path);
    }
    lower = upper;
  });
  picture.setAttribute("aria-label", `Private memory by component from ${timeText(from)} to ${timeText(to)}, ${sizeText(most)} at most. The table below has the figures.`);
  const axis = document.createElement("div");
  axis.className = "axis";
  axis.append(...[timeText(from), `${sizeText(most)} at most`, timeText(to)].map((text) => Object.assign(document.createElement("span"), { textContent: text })));
  box.replaceChildren(picture, axis);
}

// ---- the table

function changeText(bytes) {
  return bytes ? `${bytes > 0 ? "+" : "\u2212"}${sizeText(Math.abs(bytes))}` : "";
}

function partRow(name, number, values, whole, first) {
  const row = document.createElement("tr");
  const cells = [0, 1, 2, 3].map(() => row.insertCell());
  const button = document.createElement("button");
  button.className = "link";
  button.textContent = name;
  button.setAttribute("aria-pressed", state.component === name);
  button.onclick = () => choose(name, state.pid);
  cells[0].style.setProperty("--part", colour(name, number));
  cells[0].append(button);
  cells.slice(1).forEach((cell) => { cell.className = "number"; });
  cells[1].textContent = sizeText(values[number]);
  cells[2].textContent = shareText(values[number], whole);
  cells[3].classList.add("wide");
  cells[3].textContent = first ? changeText(values[number] - first[number]) : "";
  return row;
}

function drawParts(reading, entry) {
  const names = namesOf(reading);
  const values = valuesOf(entry);
  const points = pointsOf();
  const first = points.length > 1 ? valuesOf(points[0].entry) : null;
  const order = names.map((_, number) => number).filter((number) => values[number] || first?.[number]).sort((a, b) => values[b] - values[a]);
  const table = at("memory-parts");
  keepFocus(table, () => table.tBodies[0].replaceChildren(...order.map((number) => partRow(names[number], number, values, entry.private_bytes, first))));
  const foot = document.createElement("tr");
  const sums = ["All", sizeText(entry.private_bytes), "100 %", first ? changeText(entry.private_bytes - points[0].entry.private_bytes) : ""];
  sums.forEach((text, number) => { Object.assign(foot.insertCell(), { textContent: text, className: ["", "number", "number", "number wide"][number] }); });
  table.tFoot.replaceChildren(foot);
}

// ---- a component

async function drawStacks(entry) {
  const name = state.component;
  at("memory-of").hidden = !name;
  if (!name) { stacksOf = ""; return; }
  at("memory-of-title").textContent = `${name} of ${entry?.name ? `${entry.name} ${entry.pid}` : "all processes"}`;
  at("memory-of-about").textContent = `${ABOUT[name] || ""} Below, shared and swapped pages count by their share.`;
  at("memory-of-heap").hidden = name !== "heap";
  const path = query("/api/v1/memory/stacks", { component: name, pid: state.pid, dump: live ? "" : state.dump });
  if (path === stacksOf || name === UNREAD) { return; }
  stacksOf = path;
  at("memory-of-stacks").classList.add("waiting");
  let text = "";
  try { text = await getText(path); } catch (error) { text = error.message; }
  if (path !== stacksOf) { return; }
  at("memory-of-stacks").textContent = text;
  at("memory-of-stacks").classList.remove("waiting");
}

function about(reading, entry) {
  if (!reading) { return trouble || "Asking what memory is made of \u2026"; }
  if (!reading.processes.length) { return "No process's memory was read. A very short program is never read, and --whole=off reads none."; }
  const when = reading.running ? `Read at ${timeText(reading.time_ms)}.` : "Nothing runs any more: each process at its largest reading.";
  const notes = entry?.notes ? ` ${entry.notes[0].toUpperCase()}${entry.notes.slice(1)}.` : "";
  const smaller = reading.smaller ? ` ${reading.smaller} smaller processes are in the sum alone.` : "";
  return `${when}${notes}${smaller}${trouble ? ` ${trouble}` : ""}`;
}

function show() {
  if (state.tab !== "memory") { return; }
  const reading = shown();
  const entry = reading && entryOf(reading);
  at("memory-about").textContent = about(reading, entry);
  if (!reading) { return; }
  drawBars(reading);
  at("memory-parts").hidden = !entry;
  if (entry) {
    drawChart(reading);
    drawParts(reading, entry);
  } else {
    at("memory-chart").replaceChildren();
    at("memory-chart-title").hidden = true;
  }
  drawStacks(entry);
}

// Once it was looked at, readings go on while other views are shown, so that the chart has no holes.
export function draw() {
  if (state.tab === "memory" || last) { ask(); }
  show();
}
