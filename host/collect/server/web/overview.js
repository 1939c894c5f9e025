// The first view: which stacks hold the memory, and beside it whose: programs, or the builds of the one that is chosen.
import { ask } from "/ask.js";
import { momentText } from "/api.js";
import { bar, el, svg, table } from "/dom.js";
import { buildId, clean, countedText, flameLink, idText, name, nameText, percentText, remember, stackCell, stackText, tellersOf, versionText, withoutText } from "/names.js";
import { here, link, rowsWanted, times, weeksText, where } from "/where.js";

const STACKS = 15;
const ROWS = 30;
const METRICS = { "": "live", peak: "peak", total: "total" };
const FIGURES = { live: "live", peak: "at the peak", total: "allocated" };

export const metric = () => METRICS[where.metric] || "live";

// ---- stacks

const each = (sum, answer) => tellersOf(answer, metric()) ? sum / tellersOf(answer, metric()) : 0;
const meanOf = (stack, answer) => each(stack[`${metric()}_bytes`], answer);

// The answer in a sentence, for whoever reads nothing else.
function sentence(answer) {
  const all = answer[`${metric()}_bytes`];
  const mean = each(all, answer);
  const [first, ...more] = answer.stacks.slice(0, 3).map((one) => ({ text: stackText(one.frames), share: shareText(one[`${metric()}_bytes`], all) }));
  const reports = countedText(answer.dumps, "report");
  const holds = metric() === "total" ? "allocated" : "holds";
  return [el("b", { textContent: sizeText(mean) }), ` ${FIGURES[metric()]} in a report on average, of `,
    el("a", { textContent: reports, href: link({ view: "reports", control: where.control }) }),
    ...(first ? [". ", el("bdi", { className: "strong", textContent: first.text }), ` ${holds} most (${first.share})`,
      ...more.flatMap((one, i) => [i ? ", " : ", then ", el("bdi", { textContent: one.text }), ` (${one.share})`])] : []), ".", withoutText(answer, metric())];
}

function stackRow(stack, answer, most) {
  const value = meanOf(stack, answer);
  const machines = link({ view: "hosts", stack: stack.stack });
  const share = shareText(stack[`${metric()}_bytes`], answer[`${metric()}_bytes`]);
  const dumps = `${(100 * stack.share_of_dumps).toFixed(stack.share_of_dumps < 0.1 ? 1 : 0)} %`;
  const count = countedText(stack.hosts, "machine");
  return [
    el("div", {}, stackCell(stack.frames, [["In the flame graph", flameLink(stack.frames)], ["Machines that hold it", machines]]),
      el("div", { className: "tag below" }, `in ${dumps}, `, el("a", { textContent: count, href: machines }), `, at most ${sizeText(stack.most_live_bytes)}`)),
    el("div", {}, sizeText(value), bar(value, most)),
    share,
    el("a", { textContent: dumps, href: machines, title: "Which machines they are of" }),
    el("a", { textContent: countText(stack.hosts), href: machines }),
    sizeText(stack.most_live_bytes),
  ];
}

function more(count, shown) {
  return count >= shown && shown < 10000 ? el("p", { className: "view" }, el("a", { textContent: `More than ${countText(shown)}`, href: here({ rows: Math.min(10000, shown * 4) }) })) : null;
}

function stacksPart(answer, shown) {
  const most = Math.max(...answer.stacks.map((one) => meanOf(one, answer)), 0);
  const title = { live: "Live", peak: "At the peak", total: "Allocated" }[metric()];
  const columns = [["Stack", "wideCell", "The innermost function that is no plumbing, then its callers"], [title, "number barred", "Of a report, mean"],
    ["Share", "number roomy", "Of all reports\u2019 bytes"], ["In", "number wide", "Share of the reports that have it"], ["Machines", "number wide"], ["Largest", "number wide", "Live in one report, at most"]];
  return el("div", { className: "part stacks" }, el("h3", { textContent: "Stacks that hold most" }),
    el("p", { className: "sentence" }, ...sentence(answer)),
    answer.stacks.length ? table("Table of stacks", columns, answer.stacks.map((one) => stackRow(one, answer, most))) : el("p", { className: "view", textContent: "No report is of this selection." }),
    more(answer.stacks.length, shown));
}

// ---- programs

function programsPart(answer, shown) {
  const most = Math.max(...answer.programs.map((one) => one.mean_live_bytes), 0);
  const rows = answer.programs.map((one) => [
    el("div", {}, el("a", { className: "name-link", data: { row: "" }, href: link({ program: one.program, build: "" }) }, name(one.program)),
      el("div", { className: "tag" }, `${countText(one.builds)} ${one.builds === 1 ? "build" : "builds"}, `,
        el("a", { textContent: countedText(one.hosts, "machine"), href: link({ view: "hosts", program: one.program, build: "" }) }))),
    el("div", {}, sizeText(one.mean_live_bytes), bar(one.mean_live_bytes, most)),
    el("a", { textContent: countText(one.dumps), href: link({ view: "reports", program: one.program, build: "" }), title: `${countText(one.control_dumps)} by chance; the newest ${momentText(one.last_ms)}` }),
  ]);
  return el("div", { className: "part" }, el("h3", { textContent: "Programs" }),
    table("Table of programs", [["Program", "wideCell"], ["Live", "number barred", "Of a report, mean"], ["Reports", "number"]], rows), more(rows.length, shown));
}

// ---- builds

const WIDTH = 130;
const HEIGHT = 20;
const ROOM = 0.15; // of what is between the least and the most, on either side

// The mean of a build's control dumps with its interval; hollow: of all its dumps, where none is by chance.
function drawBuild(one, [from, to]) {
  const at = (value) => 4 + (WIDTH - 8) * Math.min(1, Math.max(0, to > from ? (value - from) / (to - from) : 0.5));
  const middle = HEIGHT / 2;
  const parts = [svg("line", { x1: 4, x2: WIDTH - 4, y1: middle, y2: middle, class: "axis" })];
  const control = one.control;
  if (control && control.dumps > 1) {
    const [low, high] = [control.mean_live_bytes - control.mean_live_bytes_interval, control.mean_live_bytes + control.mean_live_bytes_interval];
    parts.push(svg("line", { x1: at(low), x2: at(high), y1: middle, y2: middle, class: "interval" }),
      ...[low, high].map((end) => svg("line", { x1: at(end), x2: at(end), y1: middle - 5, y2: middle + 5, class: "interval" })));
  }
  parts.push(svg("circle", { cx: at(control ? control.mean_live_bytes : one.mean_live_bytes), cy: middle, r: 4, class: control ? "mean" : "mean hollow" }));
  return svg("svg", { width: WIDTH, height: HEIGHT, viewBox: `0 0 ${WIDTH} ${HEIGHT}`, "aria-hidden": "true", class: "build" }, ...parts);
}

// The ends of a build's interval.
function endsOf(one) {
  const mean = one.control ? one.control.mean_live_bytes : one.mean_live_bytes;
  const half = one.control && one.control.dumps > 1 ? one.control.mean_live_bytes_interval : 0;
  return [Math.max(0, mean - half), mean + half];
}

// From where to where all of them are drawn: what differs is seen, so it need not begin with nothing.
function scaleOf(builds) {
  const low = Math.min(...builds.map((one) => endsOf(one)[0]));
  const high = Math.max(...builds.map((one) => endsOf(one)[1]));
  const room = Math.max((high - low) * ROOM, high * 0.01);
  return [Math.max(0, low - room), high + room];
}

const costText = ({ mean_cost_ppm: cost, dumps_over_promise: over }) => `memlog costs ${percentText(cost)}${over ? `, in ${countedText(over, "report")} more than promised` : ""}`;

function buildRow(one, older, scale) {
  const control = one.control;
  const figures = control
    ? `${sizeText(control.mean_live_bytes)}${control.dumps > 1 ? ` \u00b1 ${sizeText(control.mean_live_bytes_interval)}` : ""}`
    : `${sizeText(one.mean_live_bytes)}, none by chance`;
  const isChosen = buildId(one) === where.build;
  return [
    el("div", {}, el("a", { className: "name-link", data: { row: "" }, href: link({ build: isChosen ? "" : buildId(one) }), title: clean(one.build_id), aria: { current: String(isChosen) } }, el("bdi", { textContent: one.version ? versionText(one.version) : idText(one.build_id) || "(not told)" })),
      el("div", { className: "tag wraps" }, `since ${new Date(one.first_ms).toISOString().slice(0, 10)}, `,
        el("a", { textContent: countedText(one.hosts, "machine"), href: link({ view: "hosts", build: buildId(one) }) }),
        ...(older ? [", ", el("a", { textContent: "what changed", href: link({ view: "diff", build: buildId(older), other: buildId(one) }), title: "Against the build before it" })] : []),
        ...(one.mean_cost_ppm === null ? [] : [", ", el("span", { textContent: costText(one), title: "Of a process\u2019s processor time, on average over the reports that say it" })]))),
    el("div", { title: "Mean of the control reports, with its 95 % interval" }, drawBuild(one, scale), el("div", { className: "tag", textContent: figures })),
    el("a", { textContent: countText(one.dumps), href: link({ view: "reports", build: buildId(one) }), title: `${countText(control ? control.dumps : 0)} by chance` }),
  ];
}

function buildsPart(answer, shown) {
  const scale = scaleOf(answer.builds);
  const rows = answer.builds.map((one, i) => buildRow(one, answer.builds[i + 1], scale));
  return el("div", { className: "part" }, el("h3", { textContent: "Builds, the newest first" }),
    rows.length ? el("p", { className: "sentence faint", textContent: `Live in a control report: the mean and its 95 % interval, drawn from ${sizeText(scale[0])} to ${sizeText(scale[1])}. Hollow: none is by chance, so of all.` }) : null,
    rows.length ? table("Table of builds", [["Build", "wideCell"], ["Live", "drawn"], ["Reports", "number"]], rows)
      : el("p", { className: "view", textContent: "No build of it has sent a report." }), more(rows.length, shown));
}

// ---- both

export async function show(signal) {
  const shown = rowsWanted(STACKS);
  const rows = rowsWanted(ROWS);
  const { program, build, control } = where;
  const [top, whose] = await Promise.all([
    ask("top", { program, build, control, metric: metric(), ...times(), limit: shown }, signal),
    program ? ask("builds", { program, ...times(), limit: rows }, signal) : ask("programs", { ...times(), limit: rows }, signal)]);
  remember(top.stacks);
  return { answers: [top, whose], about: weeksText(), title: program ? nameText(program) : "The fleet",
    content: [el("div", { className: "parts-beside" }, stacksPart(top, shown), program ? buildsPart(whose, rows) : programsPart(whose, rows))] };
}
