// A flame graph on a canvas, of the whole or of the callers and callees of one function: what tools/analyzer/formats/flamegraph.html and the
// live page (host/page) draw with. A plain script, so that it can stand in one file with its data: it defines FlameGraph and what goes with
// it, and does nothing by itself.
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
// A function as an address holds it: its name and its file, or a name alone. null: there is none.
function functionOf(text) {
  let parts = text;
  try { parts = JSON.parse(text); } catch { parts = [text]; }
  const [name, module] = Array.isArray(parts) ? parts.map(String) : [text];
  return name ? { name, module } : null;
}
const functionText = (one) => one ? JSON.stringify(one.module === undefined ? [one.name] : [one.name, one.module]) : "";
const shareText = (part, whole) => whole ? (100 * part / whole).toFixed(part * 1000 < whole ? 2 : 1) + " %" : "0 %";

class FlameGraph {
  static ROW = 18;

  // `changed` is called when something else is zoomed or looked at: what the address and the lines around the graph say. `leave` is called
  // when a key leaves the function whose callers and callees are shown.
  constructor(canvas, changed, leave) {
    this.canvas = canvas;
    this.pen = canvas.getContext("2d");
    this.changed = changed;
    this.leave = leave;
    this.data = null;
    this.view = 0;
    this.metric = 0;
    this.invert = false;
    this.flip = false;
    this.plumbing = false; // whether it is shown: operator new, std::, starts of threads
    this.search = "";
    this.function = null; // {name, module}: its callers and callees are shown, not the whole; without a module: of any
    this.path = []; // names of the zoomed frame and of those between the root and it; the first is "" among callers
    // {name, module, parent, children, values, before: by figure, width, x, depth}. Of a function the root has callers as well, whose depths
    // are below 0, and what it holds itself.
    this.tree = null;
    this.whole = []; // all stacks, by figure
    this.isFound = false; // whether a stack is through the function
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
    canvas.onmouseleave = () => {
      this.tip.hidden = true;
      if (this.hovered !== this.zoomed) { this.hovered = this.zoomed; this.draw(); } // not what the pointer crossed on its way out
    };
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

  static node(parent, name, module, step) {
    return { parent, name, module, children: new Map(), values: FIGURES.map(() => 0), before: FIGURES.map(() => 0), width: 0, x: 0, depth: parent ? parent.depth + step : 0, hit: false };
  }

  static keyOf(node) { return node.name + "\n" + node.module; }

  // `step`: 1 away from the root downwards, -1 among callers.
  static childOf(node, name, module, step) {
    const children = step < 0 && !node.parent ? node.callers : node.children;
    const key = name + "\n" + module;
    let child = children.get(key);
    if (!child) { child = FlameGraph.node(node, name, module, step); children.set(key, child); }
    return child;
  }

  static add(sums, figures) { figures.forEach((value, f) => { sums[f] += value; }); }

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
        : `${figureText(value, this.metric)}, ${this.shareOf(node, this.metric)} of ${this.function && node !== this.tree ? "the function\u2019s " : ""}${FIGURES[this.metric]}`, ""),
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
    const sides = this.flip ? ["Below", "above"] : ["Above", "below"];
    const around = this.function ? `${sides[0]}: who called it; ${sides[1]}: what it called. ` : "";
    return around + (this.isDiff
      ? `Width: ${figure}, the larger of both sides. Orange has grown, blue has shrunk, grey is as it was.`
      : this.function ? `Width: ${figure} of the stacks through it; where it called itself, from its outermost call.`
      : `Width: ${figure} of a function and of all that it called. Each file has its colour.`);
  }

  // Of all; of a caller or callee of the function that is looked at: of that function's.
  shareOf(node, figure) {
    return shareText(node.values[figure], (node === this.tree ? this.whole : this.tree.values)[figure]);
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

  isFunction(frame) {
    const wanted = this.function;
    return this.nameOf(frame) === wanted.name && (wanted.module === undefined || this.moduleOf(frame) === wanted.module);
  }

  // A stack, its innermost frame first, becomes part of the tree. Around a function it is cut at the outermost call of it, so that it is
  // counted once.
  take(side, path, figures) {
    const grow = (node, frames, step) => {
      for (const frame of frames) {
        node = FlameGraph.childOf(node, this.nameOf(frame), this.moduleOf(frame), step);
        FlameGraph.add(node[side], figures);
      }
    };
    if (side === "values") { FlameGraph.add(this.whole, figures); }
    if (!this.function) {
      FlameGraph.add(this.tree[side], figures);
      grow(this.tree, this.invert ? path : path.reverse(), 1);
      return;
    }
    const place = path.findLastIndex((frame) => this.isFunction(frame));
    if (place < 0) { return; }
    this.isFound = true;
    FlameGraph.add(this.tree[side], figures);
    if (this.isFunction(path[0])) { FlameGraph.add(this.tree.own[side], figures); }
    this.tree.module = this.moduleOf(path[place]);
    grow(this.tree, path.slice(place + 1), -1);
    grow(this.tree, path.slice(0, place).reverse(), 1);
  }

  // Make the tree of all stacks of a view.
  gather(view) {
    const nothing = () => FIGURES.map(() => 0);
    this.whole = nothing();
    this.isFound = false;
    this.tree = FlameGraph.node(null, this.function ? this.function.name : view.title, "");
    if (this.function) { Object.assign(this.tree, { callers: new Map(), own: { values: nothing(), before: nothing() } }); }
    this.eachStack(view, "values", (path, figures) => this.take("values", path, figures));
    if (view.before) { this.eachStack(view, "before", (path, figures) => this.take("before", path, figures)); }
  }

  build() {
    const view = this.data.views[this.view];
    const old = this.tree;
    const isSame = this.orderOf === this.order();
    this.gather(view);
    this.measure(this.tree, old && old.name === this.tree.name && isSame ? old : null);
    this.orderOf = this.order();
    this.place(this.tree, 0);
    this.mark();
    this.zoomed = this.tree;
    for (const name of this.path.filter((one) => one !== "")) {
      const next = this.beyond(this.zoomed, this.path[0] === "").find((child) => child.name === name && child.width > 0);
      if (!next) { break; }
      this.zoomed = next;
    }
    this.hovered = this.zoomed;
    this.draw();
    if (!isSame && this.function) { this.reveal(this.tree); }
  }

  order() { return `${this.view} ${this.metric} ${this.invert} ${this.plumbing} ${JSON.stringify(this.function)}`; }

  // The next frames away from the root; from the root itself its callers or its callees.
  beyond(node, isAbove) { return isAbove && node.above ? node.above : node.sorted; }

  // What a node is as wide as; in a diff the larger of both sides, so that what is gone is seen, too.
  measure(node, old) {
    const sum = (list) => list.reduce((all, child) => all + child.width, 0);
    node.sorted = this.arrange(node.children, old ? old.sorted : []);
    if (node.callers) { node.above = this.arrange(node.callers, old && old.above ? old.above : []); }
    node.width = Math.max(node.values[this.metric], node.before[this.metric], sum(node.sorted), sum(node.above || []));
  }

  // Siblings stand by width, but those that were there before (`old`) stay in their order.
  arrange(children, old) {
    const sorted = [...children.values()];
    if (sorted.length === 1 && old.length <= 1) { // most nodes of a large graph
      this.measure(sorted[0], old.length && FlameGraph.keyOf(old[0]) === FlameGraph.keyOf(sorted[0]) ? old[0] : null);
      return sorted;
    }
    const known = new Map(old.map((child, place) => [FlameGraph.keyOf(child), { child, place }]));
    for (const child of sorted) { this.measure(child, known.get(FlameGraph.keyOf(child))?.child); }
    const rankOf = (child) => known.get(FlameGraph.keyOf(child))?.place ?? known.size;
    return sorted.sort((a, b) => (a.name === "<other>") - (b.name === "<other>") || rankOf(a) - rankOf(b) || b.width - a.width || (a.name < b.name ? -1 : 1));
  }

  place(node, x) {
    const inARow = (list, from) => { for (const child of list) { this.place(child, from); from += child.width; } };
    node.x = x;
    inARow(node.sorted, x);
    inARow(node.above || [], x);
  }

  // What matches the search, and how much that is.
  mark() {
    let pattern = null;
    this.found = 0;
    this.searchError = false;
    try { pattern = this.search ? new RegExp(this.search, "i") : null; } catch { this.searchError = true; }
    const isHit = (name, module) => pattern.test(name) || pattern.test(module);
    const mark = (node) => {
      node.hit = pattern !== null && node !== this.tree && isHit(node.name, node.module);
      node.sorted.forEach(mark);
      (node.above || []).forEach(mark);
    };
    mark(this.tree);
    if (!pattern) { return; }
    const hits = new Map();
    const hit = (frame) => {
      if (!hits.has(frame)) { hits.set(frame, isHit(this.nameOf(frame), this.moduleOf(frame))); }
      return hits.get(frame);
    };
    this.eachStack(this.data.views[this.view], "values", (path, figures) => {
      const place = this.function ? path.findLastIndex((frame) => this.isFunction(frame)) : -1;
      if ((!this.function || place >= 0) && path.some((frame, depth) => depth !== place && hit(frame))) { this.found += figures[this.metric]; }
    });
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

  deepest(node, list, scale) {
    let depth = Math.abs(node.depth);
    for (const child of list) {
      if (child.width * scale >= 0.5) { depth = Math.max(depth, this.deepest(child, child.sorted, scale)); }
    }
    return depth;
  }

  // What is drawn: the whole below its zoomed frame, or callers and callees, of which one side is zoomed at most.
  halves(width) {
    const { tree, zoomed } = this;
    const isAbove = zoomed.depth < 0;
    const half = (node, up) => ({ node, list: this.beyond(node, up), scale: node.width ? width / node.width : 0 });
    return this.function ? [half(isAbove ? zoomed : tree, true), half(isAbove ? tree : zoomed, false)] : [half(zoomed, false)];
  }

  draw() {
    if (!this.tree) { return; }
    const { canvas, pen } = this;
    const ROW = FlameGraph.ROW;
    const ratio = window.devicePixelRatio || 1;
    const width = canvas.parentElement.clientWidth;
    const halves = this.halves(width);
    const deepest = halves.map((half) => this.deepest(half.node, half.list, half.scale));
    const above = this.function ? deepest[0] : 0;
    const rowsHeight = (above + deepest.at(-1) + 1) * ROW + 2;
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
      if (node === this.tree && this.rows.some((row) => row.node === node)) { return; } // it is in both halves
      const line = above + node.depth;
      const y = this.flip ? height - (line + 1) * ROW : line * ROW;
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
    const paint = (half, node) => {
      const w = node.width * half.scale;
      if (w < 0.5) { return; }
      box(node, (node.x - half.node.x) * half.scale, w);
      for (const child of node.sorted) { paint(half, child); }
    };
    pen.fillStyle = style.getPropertyValue("--page");
    pen.fillRect(0, 0, width, height);
    for (const half of halves) {
      for (let node = half.node; node; node = node.parent) { box(node, 0, width); }
      if (half.scale) { for (const child of half.list) { paint(half, child); } }
    }
    const row = this.rowOf(this.hovered);
    if (row) {
      pen.strokeStyle = text;
      pen.lineWidth = 1.5;
      pen.strokeRect(row.x + 0.75, row.y + 0.75, Math.max(row.w - 2, 1), ROW - 2.5);
    }
    this.changed();
  }

  rowOf(node) { return this.rows.find((one) => one.node === node); }

  // Let a row be seen that the box around the graph has scrolled away.
  reveal(node) {
    const box = this.canvas.parentElement;
    const row = this.rowOf(node);
    if (row && (row.y < box.scrollTop || row.y + FlameGraph.ROW > box.scrollTop + box.clientHeight)) {
      box.scrollTop = row.y - (box.clientHeight - FlameGraph.ROW) / 2;
    }
  }

  whereText() {
    const path = [];
    for (let up = this.zoomed; up.parent; up = up.parent) { path.unshift(up.name); }
    if (!this.function) { return path.length ? path.join(" \u203a ") : this.tree.children.size ? "Click a frame to zoom in." : "Nothing is here."; }
    if (!this.isFound) { return `No stack here is through ${this.tree.name}.`; }
    if (!path.length) { return `Callers and callees of ${this.tree.name}`; }
    return (this.zoomed.depth < 0 ? [...path.reverse(), this.tree.name] : [this.tree.name, ...path]).join(" \u203a ");
  }

  nameText() {
    const node = this.hovered || this.zoomed;
    return node.name + (node.module && node.module !== node.name ? "  \u2014  " + node.module : "");
  }

  // The function that is looked at, as `function` takes it; null: no frame, or the one that is shown already.
  chosenFunction() {
    const node = this.hovered || this.zoomed;
    return node && node !== this.tree && node.name !== "<other>" ? { name: node.name, module: node.module } : null;
  }

  figuresText() {
    const node = this.hovered || this.zoomed;
    const own = this.function && node === this.tree ? this.tree.own : null;
    const parts = [];
    for (let f = 0; f < figuresOf(this.data).length; f++) {
      const now = node.values[f];
      const name = FIGURES[f].split(" ")[0];
      if (this.isDiff) {
        const change = now - node.before[f];
        const itself = own ? `, itself ${figureText(own.before[f], f)} \u2192 ${figureText(own.values[f], f)}` : "";
        parts.push(`${name}: ${figureText(node.before[f], f)} \u2192 ${figureText(now, f)} (${change > 0 ? "+" : ""}${figureText(change, f)})${itself}`);
      } else if (f >= 6) {
        parts.push(`${name}: ${sizeText(now)}${own ? `, itself ${sizeText(own.values[f])}` : ""}`);
      } else if (f % 2 === 0) {
        const itself = own ? `, itself ${sizeText(own.values[f])} in ${countText(own.values[f + 1])}` : "";
        parts.push(`${name}: ${sizeText(now)} in ${countText(node.values[f + 1])} (${this.shareOf(node, f)})${itself}`);
      }
    }
    return parts.join("  \u00b7  ");
  }

  zoom(node) {
    this.zoomed = node;
    this.hovered = node;
    this.path = [];
    for (let up = node; up.parent; up = up.parent) { this.path.unshift(up.name); }
    if (node.depth < 0) { this.path.unshift(""); }
    this.draw();
    if (this.function) { this.reveal(node); }
    else if (this.flip) { this.canvas.parentElement.scrollTop = this.canvas.parentElement.scrollHeight; }
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
    const siblings = node.parent ? this.beyond(node.parent, node.depth < 0).filter((one) => one.width > 0) : [node];
    const place = siblings.indexOf(node);
    const isDown = key === (this.flip ? "ArrowUp" : "ArrowDown");
    const isAbove = node.depth < 0 || (this.function !== null && node === this.tree && !isDown); // where callers are
    let next = null;
    if (key === "ArrowLeft") { next = siblings[place - 1]; }
    else if (key === "ArrowRight") { next = siblings[place + 1]; }
    else if (isDown !== isAbove) { next = this.beyond(node, isAbove).find((one) => one.width > 0); }
    else { next = node.parent; }
    if (next) { this.hovered = next; this.draw(); this.reveal(next); }
  }

  // A key that the graph understands by itself. False: it does not.
  key(key) {
    if (!this.tree) { return false; }
    if (key.startsWith("Arrow")) { this.step(key); }
    else if (key === "Enter") { if (this.hovered) { this.zoom(this.hovered); } }
    else if (this.function && this.zoomed === this.tree && (key === "Backspace" || key === "Escape")) { this.leave(); }
    else if (key === "Backspace") { if (this.zoomed.parent) { this.zoom(this.zoomed.parent); } }
    else if (key === "Escape") { this.zoom(this.tree); }
    else { return false; }
    return true;
  }
}
