// The table of processes, kept up to date row by row.
import { state, change } from "./state.js";
import { apply, whyLost } from "./lost.js";

const at = (id) => document.getElementById(id);
const HISTORY = 300; // seconds that a row remembers
const ROWS_FIRST = 30; // more than the table shows without being scrolled
const MEMBERS_MAX = 65536; // ids above are of processes without a profile
const REST_MS = 300;
const processes = new Map(); // id -> { row, history: [{ t, live }], events, element }
const chosen = new Set(); // ids with a mark
let now = 0;
let previous = 0;
let act = () => {};
let live = true;
let treeLive = 0;
let treeLeft = 0; // by processes that ended, where nothing runs any more

export const all = () => [...processes.values()].map((one) => one.row);
export const history = () => processes;

// As the report counts: an image that was left by exec is no process of its own, a folded row is several.
export function countOf(rows) {
  const told = new Set();
  let count = 0;
  for (const row of rows) {
    if (row.state !== "replaced") { count += row.folded_processes || 1; told.add(row.pid); }
  }
  for (const row of rows) {
    if (row.state === "replaced" && !row.folded_processes && !told.has(row.pid)) { count++; told.add(row.pid); }
  }
  return count;
}

// How many program images they ran.
export const imagesOf = (rows) => rows.reduce((sum, row) => sum + (row.folded_processes || 1), 0);
export const chosenPids = () => [...chosen].map((id) => processes.get(id)?.row).filter((row) => row && row.state === "running").map((row) => row.pid);
export const isIdle = () => processes.size > 0 && !all().some((row) => row.recording || row.live_bytes);
export const byPid = (pid) => all().filter((row) => row.pid === Number(pid)).at(-1);

export function init(isLive, onAct) {
  live = isLive;
  act = onAct;
  at("filter").value = state.filter;
  at("ended").checked = state.ended === "1";
  at("filter").oninput = () => change({ filter: at("filter").value });
  at("ended").onchange = () => change({ ended: at("ended").checked ? "1" : "" });
}

// Those that had no profile and are in none of these rows: they are recorded now, or told together.
export function forget(unrecorded) {
  const ids = new Set(unrecorded.map((row) => row.id));
  for (const [id, one] of processes) {
    if (one.row.reason && !ids.has(id) && one.row.recordable === false && one.row.id > MEMBERS_MAX) {
      one.parts?.tr.remove();
      processes.delete(id);
    }
  }
}

// Rows that changed, at a time in ms, of a tree that holds so much.
export function take(rows, time, tree) {
  previous = now;
  now = time;
  treeLive = tree.live_bytes;
  treeLeft = tree.live_bytes ? 0 : tree.left_bytes || 0;
  for (const row of rows) {
    const known = processes.get(row.id) || { history: [], eventsBefore: row.events, eventsNow: row.events };
    known.row = row;
    known.eventsNow = row.events;
    processes.set(row.id, known);
  }
  for (const one of processes.values()) {
    const over = one.row.state !== "running";
    const last = one.history.at(-1);
    if (over && last && last.live === one.row.live_bytes) { one.rate = 0; continue; }
    one.rate = previous ? 1000 * (one.eventsNow - one.eventsBefore) / Math.max(1, now - previous) : 0;
    one.eventsBefore = one.eventsNow;
    one.history.push({ t: now, live: one.row.live_bytes, total: one.row.total_bytes, resident: one.row.resident_bytes, privately: one.row.footprint_bytes });
    if (one.history.length > HISTORY) { one.history.shift(); }
  }
}

// Bytes a second over the last ten seconds.
function growth(one) {
  const last = one.history.at(-1);
  const first = one.history.find((point) => point.t >= last.t - 10500) || last;
  return last.t > first.t ? 1000 * (last.live - first.live) / (last.t - first.t) : 0;
}

const isShown = (row) => {
  if (row.state !== "running" && state.ended !== "1" && live && String(row.pid) !== state.pid) { return false; }
  const words = `${row.name} ${row.pid} ${row.role} ${roleText(row)} ${(row.command_line || []).join(" ")}`.toLowerCase();
  return words.includes(state.filter.toLowerCase());
};

// Children behind their parents; who is not shown hands its children to its own parent.
function ordered() {
  const below = new Map();
  const shownParent = (row) => {
    let parent = processes.get(row.parent_id);
    while (parent && !isShown(parent.row)) { parent = processes.get(parent.row.parent_id); }
    return parent ? parent.row.id : 0;
  };
  for (const { row } of processes.values()) {
    if (!isShown(row)) { continue; }
    const parent = shownParent(row);
    if (!below.has(parent)) { below.set(parent, []); }
    below.get(parent).push(row.id);
  }
  const out = [];
  const walk = (id, depth) => { for (const child of below.get(id) || []) { out.push([child, depth]); walk(child, depth + 1); } };
  walk(0, 0);
  return out;
}

// Its elements, by the names that the template's `data-part` gives them.
function element(id) {
  const tr = at("row").content.firstElementChild.cloneNode(true);
  const parts = { tr };
  for (const part of tr.querySelectorAll("[data-part]")) { parts[part.dataset.part] = part; }
  parts.mark.onchange = () => { if (parts.mark.checked) { chosen.add(id); } else { chosen.delete(id); } saySelection(); };
  parts.button.onclick = () => { const { pid } = processes.get(id).row; change({ pid: state.pid === String(pid) ? "" : pid, role: "" }); };
  parts.action.onclick = () => act(processes.get(id).row);
  owners.set(parts.spark, id);
  seen.observe(parts.spark);
  return parts;
}

function set(node, text) { if (node.textContent !== text) { node.textContent = text; } }

// Only those lines are drawn that are on the screen: two hundred canvases are more work than all the rest.
const owners = new WeakMap();
const seen = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    const one = processes.get(owners.get(target));
    one.isSeen = isIntersecting;
    if (isIntersecting) { spark(target, one.history); }
  }
});

function spark(canvas, points) {
  if (points.length < 2) { return; }
  canvas.width = 240; // and clear
  canvas.height = 40;
  const pen = canvas.getContext("2d");
  const style = getComputedStyle(document.documentElement);
  const most = Math.max(...points.map((point) => point.live), 1);
  const [first, last] = [points[0].t, points.at(-1).t];
  const x = (point) => (point.t - first) / (last - first || 1) * canvas.width;
  const y = (point) => canvas.height - 2 - point.live / most * (canvas.height - 6);
  pen.beginPath();
  points.forEach((point, number) => number ? pen.lineTo(x(point), y(point)) : pen.moveTo(x(point), y(point)));
  pen.strokeStyle = style.getPropertyValue("--accent");
  pen.lineWidth = 2;
  pen.stroke();
  pen.lineTo(canvas.width, canvas.height);
  pen.lineTo(0, canvas.height);
  pen.fillStyle = style.getPropertyValue("--bar");
  pen.globalAlpha = 0.35;
  pen.fill();
  pen.globalAlpha = 1;
}

const ENDINGS = { exited: (row) => row.exit_code ? `exited ${row.exit_code}` : "exited", killed: (row) => `killed by signal ${row.signal}`, replaced: () => "before exec" };

function noteOf(row) {
  if (row.trouble) { return row.trouble; }
  if (row.recorded === false && row.footprint_bytes && (row.note || row.reason)) { return `${row.note || row.reason}; private memory ${sizeText(row.footprint_bytes)}`; }
  if (row.note || row.reason) { return row.note || row.reason; }
  if (row.recorded !== false && row.coverage && row.coverage.unseen) { return `not covered: ${row.coverage.unseen}`; }
  if (row.lost_events) { return `${countText(row.lost_events)} events are lost`; }
  return row.recorded === false && !row.recording && row.state === "running" && live ? "not recorded" : "";
}

// The run's first process, whatever image it has become.
function isFirst(row) {
  let image = row;
  while (image && image.parent_id && image.pid === row.pid) { image = processes.get(image.parent_id)?.row; }
  return Boolean(image) && image.pid === row.pid;
}

// Its role where somebody has said one; JSON and options keep Chromium's names.
const roleText = (row) => (row.role === "other" ? "" : row.role === "browser" && isFirst(row) ? "main" : row.role);

function fill(one, depth) {
  const { row, parts } = one;
  const over = row.state !== "running";
  const grows = growth(one);
  parts.tr.classList.toggle("over", Boolean(over && live));
  parts.tr.classList.toggle("chosen", String(row.pid) === state.pid);
  parts.dot.classList.toggle("on", Boolean(row.recording) && !whyLost());
  parts.dot.title = whyLost() || (row.recording ? "recorded" : "not recorded");
  set(parts.button, row.name);
  parts.button.title = (row.command_line || []).join(" ").slice(0, 500);
  parts.button.setAttribute("aria-pressed", String(row.pid) === state.pid);
  parts.button.setAttribute("aria-label", `${row.name} ${row.pid}`);
  parts.mark.setAttribute("aria-label", `Choose ${row.name} ${row.pid}`);
  parts.mark.checked = chosen.has(row.id);
  parts.mark.disabled = over || !live || Boolean(whyLost());
  set(parts.pid, String(row.pid));
  set(parts.role, [roleText(row), over ? ENDINGS[row.state]?.(row) || row.state : ""].filter(Boolean).join(", "));
  set(parts.note, noteOf(row));
  parts.name.style.paddingLeft = `${Math.min(depth, 8) * 14}px`;
  const isSeen = row.recorded !== false; // else there are no figures, not figures of 0
  set(parts.live, isSeen ? sizeText(row.live_bytes) : "");
  set(parts.held, isSeen ? sizeText(row.held_at_tree_peak_bytes || 0) : "");
  const whole = row.in_tree ? treeLive : treeLeft; // who has ended has no share of what is live
  set(parts.shareText, whole && isSeen ? shareText(row.live_bytes, whole) : "");
  parts.meter.value = whole ? row.live_bytes / whole : 0;
  const growthText = over || Math.abs(grows) < 0.5 ? "" : `${grows > 0 ? "+" : ""}${sizeText(Math.round(grows))}/s`;
  set(parts.growth, growthText);
  set(parts.growthBelow, growthText);
  if (one.isSeen) { spark(parts.spark, one.history); }
  set(parts.resident, row.resident_bytes ? sizeText(row.resident_bytes) : "");
  set(parts.sampling, samplingOf(row));
  set(parts.events, one.rate >= 1 ? `${countText(Math.round(one.rate))}/s` : "");
  set(parts.lost, row.lost_events ? countText(row.lost_events) : "");
  parts.lost.classList.toggle("bad", row.lost_events > 0);
  set(parts.action, row.recording ? "Stop recording" : "Record");
  parts.action.setAttribute("aria-label", `${row.recording ? "Stop recording" : "Record"} ${row.name} ${row.pid}`);
  parts.action.hidden = over || !live || row.recordable === false;
}

// "1 in 64 KiB, cost 0.6 % of 1 %"
function samplingOf(row) {
  if (!row.recording) { return ""; }
  const every = row.sampling_bytes > 1 ? `1 in ${sizeText(row.sampling_bytes)}` : "every one";
  return row.cost_ppm === undefined ? every : `${every}, cost ${percentOf(row.cost_ppm)} of ${percentOf(row.promised_ppm)}`;
}

function percentOf(millionths) {
  const percent = millionths / 10000;
  return `${percent < 0.1 ? percent.toFixed(2) : percent < 10 ? Number(percent.toFixed(1)) : Math.round(percent)} %`;
}

function saySelection() {
  const count = chosenPids().length;
  at("chosen").textContent = count ? `${count} chosen` : "";
  at("save").textContent = count ? `Save dump of ${count}` : "Save dump";
}

// Of many new rows the first are there at once, the others when the flame graph has had its turn.
export function draw(most = ROWS_FIRST) {
  const body = at("rows");
  const order = ordered();
  const shown = new Set(order.map(([id]) => id));
  for (const [id, one] of processes) { if (!shown.has(id) && one.parts) { one.parts.tr.remove(); } }
  let place = body.firstElementChild;
  let made = 0;
  for (const [id, depth] of order) {
    const one = processes.get(id);
    if (!one.parts && made++ === most) {
      setTimeout(() => draw(Infinity), REST_MS);
      break;
    }
    one.parts ||= element(id);
    if (place === one.parts.tr) { place = place.nextElementSibling; } else { body.insertBefore(one.parts.tr, place); }
    fill(one, depth);
  }
  const over = countOf(all()) - countOf(all().filter((row) => row.state === "running"));
  const none = state.filter ? `No process has \u201c${state.filter}\u201d in its name, pid, role or command line.` : over ? "No process runs any more: \u201cended\u201d shows those that did." : "No process has come yet.";
  at("none").hidden = order.length > 0;
  at("none").textContent = order.length ? "" : none;
  at("ended").parentElement.lastChild.textContent = ` ended (${over})`;
  at("ended").parentElement.hidden = !live;
  at("ended").checked = state.ended === "1";
  if (at("filter").value !== state.filter) { at("filter").value = state.filter; }
  saySelection();
  apply();
}

// The process before or behind the one that is looked at.
export function step(by) {
  const order = ordered().map(([id]) => processes.get(id).row.pid);
  const place = order.indexOf(Number(state.pid));
  const next = order[place < 0 ? (by > 0 ? 0 : order.length - 1) : place + by];
  if (next !== undefined) {
    change({ pid: next, role: "" });
    [...processes.values()].find((one) => one.row.pid === next)?.parts?.tr.scrollIntoView({ block: "nearest" });
  }
}

export function sayMissing(list) {
  const box = at("missing");
  box.hidden = !list.length;
  box.firstElementChild.textContent = `${list.length} not profiled`;
  box.lastElementChild.replaceChildren(...list.slice(0, 500).map((one) => {
    const item = document.createElement("li");
    item.textContent = `${one.path || "?"} (${one.pid}): ${one.reason}`;
    return item;
  }));
}
