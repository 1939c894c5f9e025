// Names that machines sent, as a page can show them: hostile ones do no more than look odd.
import { el } from "/dom.js";
import { link } from "/where.js";

// What is not seen or turns the text around it is shown by its number.
const shown = (text) => text.replace(/[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}]/gu, (one) => `\\u{${one.codePointAt(0).toString(16)}}`);
export const clean = (text) => /[^ -~]/.test(text) ? shown(String(text)) : String(text);

const MOST = 300; // of a name that stands among others; the whole is in its title
const cut = (text, most) => text.length > most ? `${text.slice(0, most)}\u2026` : text;

// "": whoever sent it did not tell.
export function name(text, what = {}) {
  const whole = clean(text);
  return el("bdi", { textContent: cut(whole, MOST) || "(not told)", className: whole ? "" : "faint", title: cut(whole, 4 * MOST), ...what });
}

export const nameText = (text) => cut(clean(text), 80) || "(not told)";

export const idText = (id) => clean(id).length > 16 ? `${clean(id).slice(0, 12)}\u2026` : clean(id);
export const versionText = (version) => cut(clean(version), 40);
// The build's version where it has one; builds are told apart by their ids.
export const buildText = (build) => build.version ? `${versionText(build.version)} (${idText(build.build_id) || "no id"})` : idText(build.build_id) || "(not told)";

// As questions and the address call it: "" is any build.
export const buildId = (build) => build.build_id || "none";

export const countedText = (count, what) => `${countText(count)} ${what}${count === 1 ? "" : "s"}`;

// Of an answer: the reports that say the metric ("live", "peak", "total"); and the words about those that do not.
const lacking = (answer, metric) => answer[`dumps_without_${metric}`] || 0;
export const tellersOf = (answer, metric) => answer.dumps - lacking(answer, metric);
export const withoutText = (answer, metric) => lacking(answer, metric) ? ` ${countText(lacking(answer, metric))} of ${countedText(answer.dumps, "report")} ${lacking(answer, metric) === 1 ? "says" : "say"} no ${metric}.` : "";
// A figure that the report's form may not say.
export const toldSize = (bytes) => bytes === null ? "not told" : sizeText(bytes);

// Millionths: "0.04 %", "1.2 %".
export const percentText = (ppm) => `${+(ppm / 10000).toPrecision(ppm < 1000 ? 1 : 2)} %`;

// ---- stacks

const fileOf = (path) => path.slice(path.lastIndexOf("/") + 1);
export const frameText = (frame) => clean(typeof frame === "string" ? frame : `${fileOf(String(frame[0]))}+0x${Number(frame[2]).toString(16)}`);
// As the flame graph calls it.
const nodeName = (frame) => clean(typeof frame === "string" ? frame : `[${frame[0]}]`);

// What every allocation goes through says little about whose it is.
const PLUMBING = /^(operator (new|delete)\b|std::|__gnu_cxx::|(malloc|calloc|realloc|reallocarray|strdup|posix_memalign|aligned_alloc|memalign)$)/;

// Which frame a stack is called by: the innermost that is no plumbing.
function headOf(frames) {
  for (let i = frames.length - 1; i >= 0; i--) {
    if (!PLUMBING.test(typeof frames[i] === "string" ? frames[i] : "")) { return i; }
  }
  return frames.length - 1;
}

const known = new Map(); // frames by the id of a stack, of all answers so far

export const remember = (stacks) => { for (const one of stacks) { known.set(one.stack, one.frames); } };
export const framesOf = (stack) => known.get(stack);

export const stackText = (frames) => frames.length ? cut(frameText(frames[headOf(frames)]), 80) : "(no frames)";

// The stack in one line, its frames when it is opened; `links` stand below them: [text, address].
export function stackCell(frames, links = []) {
  const head = headOf(frames);
  const callers = frames.slice(Math.max(0, head - 6), Math.max(0, head)).reverse().map((frame) => `< ${cut(frameText(frame), 120)}`).join(" ");
  const box = el("details", { className: "stack" },
    el("summary", { data: { row: "" } },
      el("bdi", { className: "function", textContent: frames.length ? cut(frameText(frames[head]), MOST) : "(no frames)" }),
      el("bdi", { className: "callers", textContent: callers })));
  box.addEventListener("toggle", () => {
    if (box.childElementCount > 1) { return; }
    box.append(el("ol", { className: "frames", tabIndex: 0, aria: { label: "Frames, the innermost first" } }, ...[...frames].reverse().map((frame) => el("li", {}, el("bdi", { textContent: frameText(frame) })))),
      el("p", { className: "links" }, ...links.flatMap(([text, href]) => [el("a", { textContent: text, href }), " "])));
  });
  return box;
}

// A stack in the flame graph: its own frame is zoomed.
export const flameLink = (frames, what = {}) => link({ view: "flame", zoom: JSON.stringify(frames.map(nodeName)), ...what });
