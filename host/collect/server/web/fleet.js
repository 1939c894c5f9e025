// The collector's page: which view, of what; who may ask; what goes wrong. All that is seen is in the address (where.js).
import * as ask from "/ask.js";
import * as diff from "/diff.js";
import * as flame from "/flame.js";
import * as hosts from "/hosts.js";
import * as overview from "/overview.js";
import * as reports from "/reports.js";
import { clockText, momentText, zoneText } from "/api.js";
import { at, el } from "/dom.js";
import { buildId, buildText, clean, nameText } from "/names.js";
import { go, link, onWhere, takeToken, where } from "/where.js";

const SLOW_MS = 1500; // then it is said that an answer is waited for
const EMPTY_MS = 5000; // how often an empty collector is looked at again
const TABS = [["", "Stacks"], ["flame", "Flame graph"], ["diff", "What changed"], ["hosts", "Machines"], ["reports", "Reports"]];
// What each view is asked by, in the bar above it.
const VIEWS = {
  "": { show: overview.show, filters: ["program", "build", "metric", "from", "until", "control"] },
  flame: { show: flame.show, filters: ["program", "build", "other", "metric", "from", "until", "control", "colour", "invert", "search"] },
  diff: { show: diff.show, filters: ["program", "build", "other", "swap", "metric", "from", "until"] },
  hosts: { show: hosts.show, filters: ["program", "build", "from", "until", "control", "host"] },
  reports: { show: reports.show, filters: ["program", "build", "from", "until", "control", "host", "stack"] },
  report: { show: reports.showOne, filters: [] },
};
let showing = null; // an AbortController
let emptyTimer = 0;

const viewOf = () => VIEWS[where.view] || VIEWS[""];

function say(text, isBad = true) {
  at("message").textContent = text;
  at("message").hidden = !text;
  at("message").classList.toggle("bad", isBad);
}

// ---- around the view

function drawTabs() {
  at("tabs").replaceChildren(...TABS.map(([view, title], i) => el("a", {
    textContent: title, title: String(i + 1), className: "tab", href: link({ view, ...(view === "diff" || view === "flame" ? { other: where.other } : {}) }),
    ...((where.view === view || (where.view === "report" && view === "reports")) ? { aria: { current: "page" } } : {}) })));
}

function fill(select, first, options, value) {
  const given = options.some(([one]) => one === value) || !value ? options : [[value, nameText(value)], ...options];
  select.replaceChildren(new Option(first, ""), ...given.map(([one, text]) => new Option(text, one)));
  select.value = value;
}

function drawFilters(programs, builds) {
  const wanted = viewOf().filters;
  for (const one of document.querySelectorAll("[data-filter]")) { one.hidden = !wanted.includes(one.dataset.filter); }
  const isNarrowed = ["program", "build", "from", "until", "control", "host", "stack"].some((one) => where[one] && (wanted.includes(one) || where.view === "hosts"));
  at("clear").hidden = !wanted.length || !isNarrowed;
  at("filters").hidden = !wanted.length;
  const isDiff = where.view === "diff";
  const behind = ["metric", "from", "until", "control"].filter((one) => where[one] && wanted.includes(one)).length;
  at("more").hidden = !wanted.includes("from"); // on a narrow screen the others stand behind it
  at("more").textContent = behind ? `Narrow down: ${behind} set` : "Narrow down";
  at("host").hidden ||= !where.host;
  at("host").replaceChildren("Machine ", el("bdi", { textContent: nameText(where.host) }), " \u00d7");
  at("stack").hidden ||= !where.stack;
  at("stack").textContent = "With one stack \u00d7";
  at("build-name").textContent = isDiff ? "Before" : "Build";
  at("other-name").textContent = isDiff ? "after" : "compared with";
  fill(at("program"), "all", programs.map((one) => [one.program, nameText(one.program)]), where.program);
  const ids = builds.map((one) => [buildId(one), buildText(one)]);
  fill(at("build"), isDiff ? "choose \u2026" : "all", ids, where.build);
  fill(at("other"), isDiff ? "choose \u2026" : "nothing", ids, where.other);
  for (const id of ["build", "other"]) { at(id).parentElement.hidden ||= !where.program; }
  at("other").parentElement.hidden ||= where.view === "flame" && !where.build;
  at("swap").hidden ||= !where.build || !where.other;
  at("metric").value = where.metric;
  at("colour").value = where.colour;
  at("colour").parentElement.hidden ||= Boolean(where.build && where.other);
  at("from").value = where.from;
  at("until").value = where.until;
  at("control").checked = where.control === "1";
  at("invert").setAttribute("aria-pressed", where.invert === "1");
  if (at("search").value !== where.search) { at("search").value = where.search; }
}

function drawTotals(programs) {
  const sum = (key) => programs.reduce((all, one) => all + one[key], 0);
  const newest = Math.max(0, ...programs.map((one) => one.last_ms));
  const parts = [["reports", countText(sum("dumps"))], ["by chance", countText(sum("control_dumps"))], ["programs", countText(programs.length)], ["newest", newest ? momentText(newest).slice(0, 16) : "none"]];
  at("totals").replaceChildren(...parts.map(([title, value]) => el("div", {}, el("dt", { textContent: title }), el("dd", { textContent: value }))));
}

// Parts of the store that did not answer are in no figure.
function drawMissing(answers) {
  const missing = [...new Set(answers.flatMap((one) => one.missing_shards || []))];
  at("shards").hidden = !missing.length;
  at("shards").replaceChildren(el("b", { textContent: "NOT ALL OF THE FLEET" }),
    ` ${missing.length === 1 ? "1 part" : `${missing.length} parts`} of the store did not answer, and what they have is in no figure here: ${missing.map(clean).join(", ")}`);
}

// ---- who asks

function askToken(why) {
  showing?.abort();
  clearTimeout(emptyTimer);
  at("token").hidden = false;
  at("all").hidden = true;
  at("totals").replaceChildren();
  at("shards").hidden = true;
  at("about").textContent = location.host;
  at("token-about").textContent = why || "The collector shows a team\u2019s reports to whoever has one of its read tokens.";
  at("token-about").classList.toggle("bad", Boolean(why));
  at("token-text").value = "";
  at("token-text").focus();
}

const REFUSED = {
  401: "The collector does not know this token. Which one is meant? It may have been changed.",
  403: "This token is for sending reports. A read token is wanted.",
};

// ---- the view

// Nothing has come yet: the two commands that change that.
function drawEmpty() {
  const address = `${location.origin}/`;
  const step = (text, command) => el("li", {}, el("p", { textContent: text }), el("pre", { tabIndex: 0, textContent: command }));
  return el("div", { className: "view empty-store" },
    el("p", { className: "strong", textContent: "No report has come yet." }),
    el("ol", {},
      step("Where the collector runs, take its token for sending into a file (here of a store that is fleet.db):", "awk '$2 == \"write\" { print $3 }' fleet.db.tokens > send.token"),
      step("On a machine that has this file, run a program that reports here when it holds 1 MiB:", `memlog run \\\n    --upload=${address} \\\n    --upload-token-file=send.token \\\n    --threshold=browser=1M \\\n    --trigger-interval=5 -- PROGRAM`)),
    el("p", { className: "faint", textContent: "This page looks again by itself. Triggers other than a size, and reports by chance: docs/triggers-and-uploads.md." }));
}

async function context(signal) {
  const programs = await ask.ask("programs", { limit: 1000 }, signal);
  const builds = where.program && viewOf().filters.includes("build") ? await ask.ask("builds", { program: where.program, limit: 1000 }, signal) : { builds: [] };
  return { programs, builds };
}

function lookAgain() {
  clearTimeout(emptyTimer);
  emptyTimer = setTimeout(() => { ask.forget(); show(); }, EMPTY_MS);
}

function drawView(view, { programs, builds }) {
  const isEmpty = programs.programs.length === 0 && where.view !== "report";
  const title = isEmpty ? "Nothing yet" : view.title;
  const place = document.title.startsWith(title) ? rowsToStep().indexOf(document.activeElement) : -1;
  document.title = `${title} \u2014 memlog fleet`;
  at("heading").replaceChildren(el("bdi", { textContent: title }));
  at("about-view").replaceChildren(...[view.about || ""].flat().map((one) => (one instanceof Node ? one : String(one))));
  at("about-view").hidden = isEmpty || !at("about-view").textContent;
  at("flame-view").hidden = isEmpty || !view.draw;
  at("content").replaceChildren(...(isEmpty ? [drawEmpty()] : view.content));
  at("filters").hidden ||= isEmpty;
  at("tabs").hidden = isEmpty;
  if (place >= 0) { rowsToStep()[place]?.focus({ preventScroll: true }); } // asking again leaves the focus where it is
  drawMissing([programs, builds, ...view.answers]);
  if (isEmpty) { lookAgain(); } else { view.draw?.(); }
}

async function show() {
  showing?.abort();
  clearTimeout(emptyTimer);
  const mine = new AbortController();
  showing = mine;
  if (!ask.hasToken()) { askToken(""); return; }
  drawTabs();
  document.body.classList.add("waiting");
  at("all").setAttribute("aria-busy", "true");
  const slow = setTimeout(() => { if (at("message").hidden) { say("The collector is at work on the answer \u2026", false); } }, SLOW_MS);
  try {
    const [around, view] = await Promise.all([context(mine.signal), viewOf().show(mine.signal)]);
    if (mine.signal.aborted) { return; }
    say("");
    at("token").hidden = true;
    at("all").hidden = false;
    at("about").textContent = `${location.host}, asked at ${clockText(Date.now())} ${zoneText(Date.now())}`;
    drawTotals(around.programs.programs);
    drawFilters(around.programs.programs, around.builds.builds || []);
    drawView(view, around);
  } catch (error) {
    if (mine.signal.aborted) { return; }
    if (REFUSED[error.status]) {
      ask.setToken("");
      say("");
      askToken(REFUSED[error.status]);
    } else {
      at("all").hidden = false;
      say(`The collector says: ${clean(error.message)}`);
    }
  } finally {
    clearTimeout(slow);
    if (showing === mine) {
      document.body.classList.remove("waiting");
      at("all").removeAttribute("aria-busy");
    }
  }
}

// ---- keys

const rowsToStep = () => [...document.querySelectorAll("#content [data-row]")];

function step(by) {
  const rows = rowsToStep();
  const place = rows.indexOf(document.activeElement);
  rows[place < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.min(rows.length - 1, Math.max(0, place + by))]?.focus();
}

function theme() {
  const root = document.documentElement;
  root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
  flame.redraw();
}

function refresh() {
  ask.forget();
  show();
}

const METRICS = ["", "peak", "total"];
const keys = {
  j: () => step(1),
  k: () => step(-1),
  a: () => { location.hash = link({ program: "", build: "" }); },
  m: () => { if (viewOf().filters.includes("metric")) { go({ metric: METRICS[(METRICS.indexOf(where.metric) + 1) % METRICS.length] }); } },
  i: () => { if (where.view === "flame") { at("invert").click(); } },
  "/": () => {
    if (where.view === "flame") { at("search").focus(); } else { location.hash = link({ view: "flame" }); }
  },
  r: refresh,
  t: theme,
  "?": () => at("keys").showModal(),
};
TABS.forEach(([view], i) => { keys[String(i + 1)] = () => { location.hash = link({ view }); }; });

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]") || !ask.hasToken()) { return; }
  const typing = ["INPUT", "SELECT", "TEXTAREA"].includes(event.target.tagName) && event.target.type !== "checkbox";
  if (typing && event.key === "Escape") { event.target.blur(); return; }
  const inGraph = event.target === at("graph") || event.target === document.body;
  if (typing || (where.view === "flame" && inGraph && flame.key(event.key))) {
    if (!typing) { event.preventDefault(); }
    return;
  }
  if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
}

// ---- begin

function listen() {
  at("program").onchange = () => go({ program: at("program").value, build: "", other: "", zoom: "", stack: "", rows: "" });
  at("build").onchange = () => go({ build: at("build").value, rows: "", ...(at("build").value || where.view === "diff" ? {} : { other: "" }) });
  at("other").onchange = () => go({ other: at("other").value });
  at("swap").onclick = () => go({ build: where.other, other: where.build });
  for (const id of ["metric", "colour"]) { at(id).onchange = () => go({ [id]: at(id).value }); }
  for (const id of ["from", "until"]) { at(id).onchange = () => go({ [id]: at(id).value }); }
  for (const id of ["host", "stack"]) { at(id).onclick = () => go({ [id]: "", rows: "" }); }
  at("control").onchange = () => go({ control: at("control").checked ? "1" : "" });
  at("invert").onclick = () => go({ invert: where.invert ? "" : "1", zoom: "" });
  at("clear").onclick = () => go({ program: "", build: "", other: "", from: "", until: "", control: "", host: "", stack: "", zoom: "", rows: "" });
  at("more").onclick = () => at("more").setAttribute("aria-expanded", String(at("filters").classList.toggle("all")));
  at("refresh").onclick = refresh;
  at("theme").onclick = theme;
  at("help").onclick = () => at("keys").showModal();
  at("forget").onclick = () => { ask.setToken(""); say(""); askToken(""); };
  at("token-form").onsubmit = (event) => {
    event.preventDefault(); // it is never sent as a form
    ask.setToken(at("token-text").value.trim());
    show();
  };
  document.addEventListener("keydown", onKey);
}

async function start() {
  const token = takeToken();
  if (token) { ask.setToken(token); }
  document.documentElement.dataset.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  ask.onTrouble((text) => { at("all").hidden = false; say(text); });
  flame.init();
  listen();
  onWhere(async (before) => {
    const given = takeToken();
    if (given) { ask.setToken(given); }
    await show();
    if (before.view !== where.view || before.guid !== where.guid) { // another page, as for whoever hears it
      at("heading").focus({ preventScroll: true });
      window.scrollTo(0, 0);
    }
  });
  await show();
}

start().catch((error) => say(error.message));
