// A flame graph on a canvas: what tools/analyzer/formats/flamegraph.html and the live page (host/page) draw with. A plain script, so that it can stand
// in one file with its data: it defines FlameGraph and what goes with it, and does nothing by itself.
"use strict";

const FIGURES = ["live bytes", "live blocks", "peak bytes", "peak blocks", "total bytes", "total blocks",
  // Of the pages on which live blocks lie; not every dump knows them.
  "resident bytes", "waste bytes", "alone bytes"];
const figuresOf = (data) => FIGURES.slice(0, data && data.views[0].pages ? 9 : 6);

function sizeText(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  let value = Math.abs(bytes);
  while (value >= 1024 && unit < units.length - 1) { value /= 1024; unit++; }
  return (bytes < 0 ? "\u2212" : "") + (unit ? value.toFixed(1) : Math.round(value)) + " " + units[unit];
}
const countText = (count) => count.toLocaleString("en-US").replace("-", "\u2212");
const figureText = (value, metric) => FIGURES[metric].endsWith("blocks") ? countText(value) + (Math.abs(value) === 1 ? " block" : " blocks") : sizeText(value);
const shareText = (part, whole) => whole ? (100 * part / whole).toFixed(part * 1000 < whole ? 2 : 1) + " %" : "0 %";

class FlameGraph {
  static ROW = 18;

  // `changed` is called when something else is zoomed or looked at: what the address and the lines around the graph say.
  constructor(canvas, changed) {
    this.canvas = canvas;
    this.pen = canvas.getContext("2d");
    this.changed = changed;
    this.data = null;
    this.view = 0;
    this.metric = 0;
    this.invert = false;
    this.flip = false;
    this.plumbing = false; // whether it is shown: operator new, std::, starts of threads
    this.search = "";
    this.path = []; // names of the zoomed frame and its callers
    this.tree = null; // {name, module, parent, children, values, before: by figure, width, x, depth}
    this.zoomed = null;
    this.hovered = null;
    this.rows = []; // rectangles as drawn, for the pointer
    this.found = 0;
    this.searchError = false;
    this.hashes = new Map();
    this.tip = document.createElement("div");
    this.tip.className = "tip";
    this.tip.setAttribute("role", "tooltip");
    this.tip.hidden = true;
    document.body.append(this.tip);
    canvas.onclick = (event) => { const node = this.under(event); if (node) { this.zoom(node); this.point(event, node); } };
    canvas.onmousemove = (event) => {
      const node = this.under(event);
      if (node && node !== this.hovered) { this.hovered = node; this.draw(); }
      this.point(event, node);
    };
    canvas.onmouseleave = () => { this.tip.hidden = true; };
  }

  get isDiff() { return this.data.views.some((view) => view.before); }

  // Show other data; what was zoomed stays so where it is still there, and frames keep their places side by side.
  show(data) {
    this.data = data;
    this.build();
  }

  set(what) {
    Object.assign(this, what);
    if (this.data) { this.build(); }
  }

  static node(parent, name, module) {
    return { parent, name, module, children: new Map(), values: FIGURES.map(() => 0), before: FIGURES.map(() => 0), width: 0, x: 0, depth: parent ? parent.depth + 1 : 0, hit: false };
  }

  static childOf(node, name, module) {
    const key = name + "\n" + module;
    let child = node.children.get(key);
    if (!child) { child = FlameGraph.node(node, name, module); node.children.set(key, child); }
    return child;
  }

  // What the frame under the pointer is, beside the pointer, within the window.
  point(event, node) {
    this.tip.hidden = !node;
    if (!node) { return; }
    const line = (text, name) => { const div = document.createElement("div"); div.className = name; div.textContent = text; return div; };
    const value = node.values[this.metric];
    const change = value - node.before[this.metric];
    this.tip.replaceChildren(
      line(node.name, "tip-name"),
      line(this.isDiff
        ? `${figureText(node.before[this.metric], this.metric)} \u2192 ${figureText(value, this.metric)} (${change > 0 ? "+" : ""}${figureText(change, this.metric)})`
        : `${figureText(value, this.metric)}, ${shareText(value, this.tree.values[this.metric])} of ${FIGURES[this.metric]}`, ""),
      ...(node.module && node.module !== node.name ? [line(node.module, "tip-faint")] : []));
    const [width, height] = [this.tip.offsetWidth, this.tip.offsetHeight];
    const left = Math.min(event.clientX + 14, window.innerWidth - width - 6);
    const below = event.clientY + 18;
    this.tip.style.left = `${Math.max(4, left)}px`;
    this.tip.style.top = `${below + height > window.innerHeight ? Math.max(4, event.clientY - height - 10) : below}px`;
  }

  // What width and colour mean.
  legendText() {
    const figure = FIGURES[this.metric];
    return this.isDiff
      ? `Width: ${figure}, the larger of both sides. Orange has grown, blue has shrunk, grey is as it was.`
      : `Width: ${figure} of a function and of all that it called. Each file has its colour.`;
  }

  // Flat rows of each stack's own: [frame, 6 figures], and [frame, 3 figures] of pages; frames are [parent + 1, name, module]. What a stack has
  // in both is called twice, with nothing for the other figures.
  eachStack(view, side, call) {
    const frames = this.data.frames;
    const plumbing = this.plumbing ? new Set() : new Set(this.data.plumbing);
    const each = (rows, count, before) => {
      for (let i = 0; i < rows.length; i += 1 + count) {
        const path = [];
        for (let frame = rows[i]; frame > 0; frame = frames[3 * (frame - 1)]) { if (!plumbing.has(frame)) { path.push(frame - 1); } }
        if (!path.length && rows[i] > 0) { path.push(rows[i] - 1); } // of plumbing alone the innermost stays
        call(path, FIGURES.map((_, figure) => figure >= before && figure < before + count ? rows[i + 1 + figure - before] : 0));
      }
    };
    each(view[side], 6, 0);
    each(view[side === "values" ? "pages" : "pages_before"] || [], 3, 6);
  }

  nameOf(frame) { return this.data.names[this.data.frames[3 * frame + 1]]; }
  moduleOf(frame) { return this.data.names[this.data.frames[3 * frame + 2]]; }

  build() {
    const view = this.data.views[this.view];
    const old = this.tree;
    this.tree = FlameGraph.node(null, view.title, "");
    const add = (side) => (path, figures) => {
      if (!this.invert) { path.reverse(); }
      let node = this.tree;
      for (let f = 0; f < figures.length; f++) { node[side][f] += figures[f]; }
      for (const frame of path) {
        node = FlameGraph.childOf(node, this.nameOf(frame), this.moduleOf(frame));
        for (let f = 0; f < figures.length; f++) { node[side][f] += figures[f]; }
      }
    };
    this.eachStack(view, "values", add("values"));
    if (view.before) { this.eachStack(view, "before", add("before")); }
    this.measure(this.tree, old && old.name === this.tree.name && this.orderOf === this.order() ? old : null);
    this.orderOf = this.order();
    this.place(this.tree, 0);
    this.mark();
    this.zoomed = this.tree;
    for (const name of this.path) {
      const next = this.zoomed.sorted.find((child) => child.name === name && child.width > 0);
      if (!next) { break; }
      this.zoomed = next;
    }
    this.hovered = this.zoomed;
    this.draw();
  }

  order() { return `${this.view} ${this.metric} ${this.invert} ${this.plumbing}`; }

  // What a node is as wide as; in a diff the larger of both sides, so that what is gone is seen, too. Siblings stand by width, but
  // those that were there before (`old`) stay in their order.
  measure(node, old) {
    let sum = 0;
    const rank = new Map(old ? old.sorted.map((child, place) => [child.name + "\n" + child.module, place]) : []);
    node.sorted = [...node.children.values()];
    for (const child of node.sorted) { sum += this.measure(child, old && old.children.get(child.name + "\n" + child.module)); }
    node.width = Math.max(node.values[this.metric], node.before[this.metric], sum);
    const rankOf = (child) => rank.get(child.name + "\n" + child.module) ?? rank.size;
    node.sorted.sort((a, b) => (a.name === "<other>") - (b.name === "<other>") || rankOf(a) - rankOf(b) || b.width - a.width || (a.name < b.name ? -1 : 1));
    return node.width;
  }

  place(node, x) {
    node.x = x;
    for (const child of node.sorted) { this.place(child, x); x += child.width; }
  }

  // What matches the search, and how much that is.
  mark() {
    let pattern = null;
    this.found = 0;
    this.searchError = false;
    try { pattern = this.search ? new RegExp(this.search, "i") : null; } catch { this.searchError = true; }
    const mark = (node, inside) => {
      node.hit = pattern !== null && node !== this.tree && (pattern.test(node.name) || pattern.test(node.module));
      if (node.hit && !inside) { this.found += node.values[this.metric]; }
      for (const child of node.sorted) { mark(child, inside || node.hit); }
    };
    mark(this.tree, false);
  }

  foundText() {
    if (this.searchError) { return "not a regular expression"; }
    return this.search ? `${figureText(this.found, this.metric)}, ${shareText(this.found, this.tree.values[this.metric])}` : "";
  }

  hash(text) {
    let value = this.hashes.get(text);
    if (value === undefined) {
      value = 0;
      for (let i = 0; i < text.length; i++) { value = (value * 31 + text.charCodeAt(i)) >>> 0; }
      this.hashes.set(text, value);
    }
    return value;
  }

  // A hue for each module, even steps of the golden angle; lightness by name, so that neighbours differ.
  colour(node) {
    const dark = document.documentElement.dataset.theme === "dark";
    if (this.isDiff) {
      // Blue to orange: told apart with every kind of colour blindness.
      const [now, before] = [node.values[this.metric], node.before[this.metric]];
      const strength = Math.min(1, Math.sqrt(Math.abs(now - before) / (Math.max(now, before) || 1)));
      if (now === before) { return dark ? "#3a4048" : "#e3e6ea"; }
      return `hsl(${now > before ? 26 : 208} ${40 + (now > before ? 55 : 45) * strength}% ${dark ? 22 + 22 * strength : 88 - 30 * strength}%)`;
    }
    if (node.name === "<other>" || node === this.tree) { return dark ? "#3a4048" : "#dfe3e8"; }
    const hue = (this.hash(node.module) * 137.508) % 360;
    return `hsl(${hue} ${dark ? 38 : 62}% ${(dark ? 27 : 76) + this.hash(node.name) % 9}%)`;
  }

  static fit(text, width) {
    const most = Math.floor((width - 8) / 6.6);
    if (most < 3) { return ""; }
    return text.length <= most ? text : text.slice(0, most - 1) + "\u2026";
  }

  deepest(node, scale) {
    let depth = node.depth;
    for (const child of node.sorted) {
      if (child.width * scale >= 0.5) { depth = Math.max(depth, this.deepest(child, scale)); }
    }
    return depth;
  }

  draw() {
    if (!this.tree) { return; }
    const { canvas, pen, zoomed } = this;
    const ROW = FlameGraph.ROW;
    const ratio = window.devicePixelRatio || 1;
    const width = canvas.parentElement.clientWidth;
    const scale = zoomed.width ? width / zoomed.width : 0;
    const rowsHeight = (this.deepest(zoomed, scale) + 1) * ROW + 2;
    const height = this.flip ? Math.max(rowsHeight, canvas.parentElement.clientHeight) : rowsHeight;
    const style = getComputedStyle(document.documentElement);
    const text = style.getPropertyValue("--text");
    canvas.width = Math.max(1, width * ratio);
    canvas.height = height * ratio;
    canvas.style.height = height + "px";
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.font = "12px system-ui, sans-serif";
    pen.textBaseline = "middle";
    this.rows = [];
    const box = (node, x, w) => {
      const y = this.flip ? height - (node.depth + 1) * ROW : node.depth * ROW;
      pen.globalAlpha = this.search && !node.hit ? 0.45 : 1;
      pen.fillStyle = this.colour(node);
      pen.fillRect(x, y, Math.max(w - 0.5, 0.5), ROW - 1);
      if (node.hit) { pen.fillStyle = style.getPropertyValue("--match"); pen.fillRect(x, y + ROW - 4, Math.max(w - 0.5, 0.5), 3); }
      pen.fillStyle = text;
      const label = FlameGraph.fit(node.name, w);
      if (label) { pen.fillText(label, x + 4, y + ROW / 2, w - 6); }
      pen.globalAlpha = 1;
      this.rows.push({ node, x, y, w });
    };
    const paint = (node) => {
      const w = node.width * scale;
      if (w < 0.5) { return; }
      box(node, (node.x - zoomed.x) * scale, w);
      for (const child of node.sorted) { paint(child); }
    };
    pen.fillStyle = style.getPropertyValue("--page");
    pen.fillRect(0, 0, width, height);
    for (let node = zoomed.parent; node; node = node.parent) { box(node, 0, width); }
    if (scale) { paint(zoomed); } else { box(zoomed, 0, width); }
    const row = this.rows.find((one) => one.node === this.hovered);
    if (row) {
      pen.strokeStyle = text;
      pen.lineWidth = 1.5;
      pen.strokeRect(row.x + 0.75, row.y + 0.75, Math.max(row.w - 2, 1), ROW - 2.5);
    }
    this.changed();
  }

  whereText() {
    const path = [];
    for (let up = this.zoomed; up.parent; up = up.parent) { path.unshift(up.name); }
    return path.length ? path.join(" \u203a ") : "Click a frame to zoom in.";
  }

  nameText() {
    const node = this.hovered || this.zoomed;
    return node.name + (node.module && node.module !== node.name ? "  \u2014  " + node.module : "");
  }

  figuresText() {
    const node = this.hovered || this.zoomed;
    const parts = [];
    for (let f = 0; f < figuresOf(this.data).length; f++) {
      const now = node.values[f];
      if (this.isDiff) {
        const change = now - node.before[f];
        parts.push(`${FIGURES[f].split(" ")[0]}: ${figureText(node.before[f], f)} \u2192 ${figureText(now, f)} (${change > 0 ? "+" : ""}${figureText(change, f)})`);
      } else if (f >= 6) {
        parts.push(`${FIGURES[f].split(" ")[0]}: ${sizeText(now)}`);
      } else if (f % 2 === 0) {
        parts.push(`${FIGURES[f].split(" ")[0]}: ${sizeText(now)} in ${countText(node.values[f + 1])} (${shareText(now, this.tree.values[f])})`);
      }
    }
    return parts.join("  \u00b7  ");
  }

  zoom(node) {
    this.zoomed = node;
    this.hovered = node;
    this.path = [];
    for (let up = node; up.parent; up = up.parent) { this.path.unshift(up.name); }
    this.draw();
    if (this.flip) { this.canvas.parentElement.scrollTop = this.canvas.parentElement.scrollHeight; }
  }

  under(event) {
    const box = this.canvas.getBoundingClientRect();
    const x = event.clientX - box.left;
    const y = event.clientY - box.top;
    const row = this.rows.find((one) => y >= one.y && y < one.y + FlameGraph.ROW && x >= one.x && x < one.x + one.w);
    return row ? row.node : null;
  }

  // The nearest frame that is drawn in that direction.
  step(key) {
    const node = this.hovered || this.zoomed;
    const siblings = node.parent ? node.parent.sorted.filter((one) => one.width > 0) : [node];
    const place = siblings.indexOf(node);
    const inwards = this.flip ? "ArrowUp" : "ArrowDown";
    let next = null;
    if (key === "ArrowLeft") { next = siblings[place - 1]; }
    else if (key === "ArrowRight") { next = siblings[place + 1]; }
    else if (key === inwards) { next = node.sorted.find((one) => one.width > 0); }
    else { next = node.parent; }
    if (next) { this.hovered = next; this.draw(); }
  }

  // A key that the graph understands by itself. False: it does not.
  key(key) {
    if (!this.tree) { return false; }
    if (key.startsWith("Arrow")) { this.step(key); }
    else if (key === "Enter") { if (this.hovered) { this.zoom(this.hovered); } }
    else if (key === "Backspace") { if (this.zoomed.parent) { this.zoom(this.zoomed.parent); } }
    else if (key === "Escape") { this.zoom(this.tree); }
    else { return false; }
    return true;
  }
}
