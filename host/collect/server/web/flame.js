// The flame graph of everything that was chosen, or of two builds in one.
import { ask } from "/ask.js";
import { at, el } from "/dom.js";
import { buildId, buildText, clean, countedText, nameText, tellersOf, withoutText } from "/names.js";
import { link, note, times, weeksText, where } from "/where.js";
import { metric } from "/overview.js";

const FIGURE = { live: 0, peak: 2, total: 4 }; // in FIGURES of flame_graph.js; blocks are not asked for
const SHOWN = Object.entries(FIGURE);
const NOTHING = Object.freeze(FIGURES.map(() => 0));
const figuresOfNode = (node, dumps) => SHOWN.map(([key], i) => node[`${key}_bytes`] / dumps[i]);

// Means of a report, of answers that are merged by name already: their sums go up the tree once.
class FleetGraph extends FlameGraph {
  gather(view) {
    if (this.invert) { super.gather(view); return; }
    this.tree = FlameGraph.node(null, view.title, "");
    this.whole = FIGURES.map(() => 0);
    for (const side of ["values", "before"]) {
      if (view.nodes[side]) { this.growSide(view.nodes[side], side); }
    }
  }

  growSide(nodes, side) {
    const made = [this.tree];
    for (const one of nodes) { made.push(this.isDiff ? FlameGraph.childOf(made[one.parent], one.name, "", 1) : this.childOfOne(made[one.parent], one.name)); }
    // Callers come first, so from the last on each is whole before it is added to its caller.
    const sums = nodes.map((one) => [...one.figures]);
    for (let i = nodes.length - 1; i >= 0; i--) {
      const to = nodes[i].parent ? sums[nodes[i].parent - 1] : null;
      sums[i].forEach((value, figure) => {
        if (to) { to[figure] += value; } else { this.tree[side][SHOWN[figure][1]] += value; }
      });
    }
    nodes.forEach((one, i) => { SHOWN.forEach(([, figure], f) => { made[i + 1][side][figure] += sums[i][f]; }); });
    if (side === "values") { this.whole = this.tree.values; }
  }

  // Of one answer, in which no caller has two of a name: as FlameGraph.node, and cheaper for a hundred thousand.
  childOfOne(parent, name) {
    const child = { parent, name, module: "", children: [], values: FIGURES.map(() => 0), before: NOTHING, width: 0, x: 0, depth: parent.depth + 1, hit: false };
    if (Array.isArray(parent.children)) { parent.children.push(child); } else { parent.children.set(parent.children.size, child); } // the root's
    return child;
  }

  own(node) { return node.values[this.metric] - node.sorted.reduce((sum, child) => sum + child.values[this.metric], 0); }

  // Names of one namespace, or of one module without names, share their hue.
  colour(node) {
    const dark = document.documentElement.dataset.theme === "dark";
    if (this.isDiff || node === this.tree) { return super.colour(node); }
    if (this.byOwn) {
      const strength = Math.sqrt(Math.max(0, this.own(node)) / (this.tree.values[this.metric] || 1));
      return strength < 0.01 ? (dark ? "#3a4048" : "#e3e6ea") : `hsl(26 ${40 + 55 * strength}% ${dark ? 22 + 22 * strength : 88 - 30 * strength}%)`;
    }
    const space = node.name.includes("::") ? node.name.slice(0, node.name.indexOf("::")) : node.name.split("_")[0];
    return `hsl(${(this.hash(space) * 137.508) % 360} ${dark ? 38 : 62}% ${(dark ? 27 : 76) + this.hash(node.name) % 9}%)`;
  }

  legendText() {
    const figure = { 0: "live", 2: "held at the peak", 4: "allocated" }[this.metric];
    if (this.isDiff) { return `Width: bytes ${figure} in a report on average, the larger of both builds. Orange has grown, blue has shrunk, grey is as it was.`; }
    return `Width: bytes ${figure} in a report on average, of a function and of all that it called. ${this.byOwn ? "The more it holds itself, the stronger." : "Each namespace has its colour."}`;
  }

  figuresText() {
    const node = this.hovered || this.zoomed;
    const parts = SHOWN.map(([key, figure]) => {
      const [now, before] = [node.values[figure], node.before[figure]];
      return this.isDiff ? `${key}: ${sizeText(before)} \u2192 ${sizeText(now)} (${now > before ? "+" : ""}${sizeText(now - before)})` : `${key}: ${sizeText(now)} (${this.shareOf(node, figure)})`;
    });
    return [...parts, ...(this.isDiff || this.invert ? [] : [`itself: ${sizeText(Math.max(0, this.own(node)))}`])].join("  \u00b7  ");
  }
}

// A side's answer with means, and names as they can be shown.
function nodesOf(answer) {
  const dumps = SHOWN.map(([key]) => tellersOf(answer, key) || 1);
  return answer.nodes.map((node) => ({ name: clean(node.name), parent: node.parent, figures: figuresOfNode(node, dumps) }));
}

// The same as flame_graph.js reads it, for what is asked of it by stacks: inverted, and found.
function stacksOf(sides, title) {
  const data = { names: [], frames: [], plumbing: [], views: [{ title, nodes: sides }] };
  const numbers = new Map([["", 0]]);
  data.names.push("");
  const numberOf = (name) => {
    if (!numbers.has(name)) { numbers.set(name, data.names.length); data.names.push(name); }
    return numbers.get(name);
  };
  for (const [side, nodes] of Object.entries(sides)) {
    const first = data.frames.length / 3;
    const rows = [];
    nodes.forEach((node, i) => {
      data.frames.push(node.parent ? first + node.parent : 0, numberOf(node.name), 0);
      if (node.figures.some((value) => value > 0)) { rows.push(first + i + 1, node.figures[0], 0, node.figures[1], 0, node.figures[2], 0); }
    });
    data.views[0][side] = rows;
  }
  return data;
}

let graph = null;
let data = null;
let shownAs = "";

function onGraph() {
  at("where").textContent = graph.whereText();
  at("legend").textContent = graph.legendText();
  at("frame-name").textContent = graph.nameText();
  at("frame-figures").textContent = graph.figuresText();
  at("found").textContent = graph.foundText();
  at("search").setAttribute("aria-invalid", graph.searchError);
  at("reset").classList.toggle("off", !graph.path.length);
  if (where.view === "flame") { note({ zoom: graph.path.length ? JSON.stringify(graph.path) : "" }); }
}

export function init() {
  graph = new FleetGraph(at("graph"), onGraph, () => {});
  at("reset").onclick = () => graph.zoom(graph.tree);
  let timer = 0;
  at("search").oninput = () => { // a large graph is searched when the word is there
    clearTimeout(timer);
    timer = setTimeout(() => {
      note({ search: at("search").value });
      graph.search = where.search;
      if (data) { graph.mark(); graph.draw(); }
    }, 150);
  };
  new ResizeObserver(() => { if (where.view === "flame" && data) { graph.draw(); } }).observe(at("graph-box"));
}

export const key = (name) => Boolean(data) && graph.key(name);
export const redraw = () => { if (data) { graph.draw(); } };

// What the address says of the graph that is there.
function apply() {
  let path = [];
  try { path = JSON.parse(where.zoom || "[]"); } catch { path = []; }
  graph.byOwn = where.colour === "own";
  Object.assign(graph, { metric: FIGURE[metric()], invert: where.invert === "1", search: where.search, path: Array.isArray(path) ? path.map(String) : [] });
  graph.show(data);
}

export async function show(signal) {
  const { program, build, other, control } = where;
  const isDiff = Boolean(build && other);
  const words = { program, control, ...times() };
  const asked = JSON.stringify([words, build, other]);
  const [answer, before, builds] = await Promise.all([
    ask("flame", { ...words, build: isDiff ? other : build }, signal),
    isDiff ? ask("flame", { ...words, build }, signal) : null,
    program ? ask("builds", { program, limit: 1000 }, signal) : null]);
  const named = (id) => buildText(builds?.builds.find((one) => buildId(one) === id) || { build_id: id });
  const title = program ? nameText(program) : "All programs";
  return {
    answers: [answer, ...(before ? [before] : [])],
    title: isDiff ? `${title}: ${named(build)} \u2192 ${named(other)}` : title,
    about: [weeksText(), el("a", { textContent: isDiff ? `${countText(before.dumps)} reports before, ${countText(answer.dumps)} after` : countedText(answer.dumps, "report"), href: link({ view: "reports" }) }),
      `, ${countedText(answer.nodes.length, "frame")} of stacks merged by name.${withoutText(answer, metric())}`],
    content: [],
    // When it is seen: a canvas that is not has no width.
    draw() {
      if (asked !== shownAs || !data) {
        data = stacksOf({ values: nodesOf(answer), ...(before ? { before: nodesOf(before) } : {}) }, title);
        shownAs = asked;
      }
      apply();
    },
  };
}
