// Single reports, and one with its rows: what stands behind every number.
import { ask } from "/ask.js";
import { momentText } from "/api.js";
import { bar, el, table } from "/dom.js";
import { buildId, buildText, clean, countedText, name, nameText, percentText, stackCell, toldSize } from "/names.js";
import { here, link, rowsWanted, times, where } from "/where.js";

const ROWS = 50;

const causeText = (one) => one.control ? "by chance" : nameText(one.trigger || one.reason);

function trouble(one) {
  const words = [one.complete === false ? "events lost" : "", one.covered === false ? "not all recorded" : ""].filter(Boolean).join(", ");
  return words ? el("span", { className: "badge", textContent: words }) : null;
}

function row(one, most) {
  return [
    el("div", {}, el("a", { className: "name-link", data: { row: "" }, href: link({ view: "report", guid: one.guid }), textContent: momentText(one.time_ms) }), trouble(one), el("div", { className: "tag below" }, name(one.host))),
    el("a", { href: link({ view: "reports", host: one.host }) }, name(one.host)),
    el("a", { href: link({ view: "", program: one.program, build: "" }) }, name(one.program)),
    el("bdi", { textContent: buildText(one) }),
    el("bdi", { textContent: causeText(one) }),
    el("div", {}, sizeText(one.live_bytes), bar(one.live_bytes, most)),
    toldSize(one.peak_bytes),
  ];
}

export async function show(signal) {
  const wanted = rowsWanted(ROWS);
  const { program, build, host, stack, control } = where;
  const answer = await ask("reports", { program, build, host, stack, control, ...times(), limit: wanted }, signal);
  const found = answer.reports;
  const most = Math.max(...found.map((one) => one.live_bytes), 0);
  const columns = [["Made", ""], ["Machine", "wide clip"], ["Program", "wide clip"], ["Build", "roomy clip"], ["Why", "wide clip"], ["Live", "number barred"], ["Peak", "number"]];
  const about = !found.length ? "" : `${found.length < wanted ? countedText(found.length, "report") : `The newest ${countText(found.length)} reports`}${program ? ` of ${nameText(program)}` : ""}${host ? ` from ${nameText(host)}` : ""}${stack ? ` with stack ${clean(stack)}` : ""}, the newest first.`;
  const rest = answer.reports.length >= wanted && wanted < 10000 ? [el("p", { className: "view" }, el("a", { textContent: `More than ${countText(wanted)}`, href: here({ rows: Math.min(10000, wanted * 4) }) }))] : [];
  return { answers: [answer], title: host ? `Reports of ${nameText(host)}` : "Reports", about,
    content: [found.length ? table("Table of reports", columns, found.map((one) => row(one, most))) : el("p", { className: "view", textContent: "No report is of this selection." }), ...rest] };
}

// ---- one

const yes = (is, words, otherwise) => is === null ? "not told" : is ? words : otherwise;

function costText({ cost_ppm: cost, promised_ppm: promised }) {
  if (cost === null) { return promised === null ? "not measured" : `not measured, ${percentText(promised)} promised`; }
  return `${percentText(cost)} of processor time${promised === null ? "" : `, ${percentText(promised)} promised${cost > promised ? ": not kept" : ""}`}`;
}

function facts(one) {
  const pairs = [
    ["Live", sizeText(one.live_bytes)], ["Peak", toldSize(one.peak_bytes)], ["Allocated", toldSize(one.total_bytes)], ["Left by ended processes", sizeText(one.left_bytes)],
    ["Private memory", sizeText(one.private_bytes)], ["Processes", countText(one.processes)],
    ["Machine", one.host ? el("a", { href: link({ view: "reports", host: one.host, program: one.program }) }, name(one.host)) : name("")],
    ["Program", el("a", { href: link({ program: one.program, build: "" }) }, name(one.program))],
    ["Build", el("a", { href: link({ program: one.program, build: buildId(one) }) }, name(one.build_id))], ["Version", name(one.version)],
    ["Why it was made", el("bdi", { textContent: `${causeText(one)}${one.reason ? ` (${nameText(one.reason)})` : ""}` })],
    ["Sampling", one.sampling_bytes > 1 ? `one allocation in ${sizeText(one.sampling_bytes)}` : "every allocation"],
    ["memlog's cost", costText(one)], ["Complete", yes(one.complete, "no event was lost", "events were lost")], ["Covered", yes(one.covered, "nothing is known to be unrecorded", "some memory was not recorded")],
    ["Its name", name(one.guid)],
  ];
  return el("dl", { className: "facts view" }, ...pairs.map(([title, value]) => el("div", {}, el("dt", { textContent: title }), el("dd", {}, value))));
}

function stackRow(one, most) {
  return [
    el("div", {}, stackCell(one.frames), el("div", { className: "tag below" }, name(one.process), one.peak_bytes === null ? "" : `, ${sizeText(one.peak_bytes)} at the peak`)),
    el("div", {}, sizeText(one.live_bytes), bar(one.live_bytes, most)),
    countText(one.live_blocks), toldSize(one.peak_bytes), toldSize(one.total_bytes),
    el("div", {}, name(one.process), one.role ? el("span", { className: "tag" }, " ", name(one.role)) : null),
    el("bdi", { textContent: [one.heap, one.type].filter(Boolean).map(nameText).join(", ") }),
  ];
}

export async function showOne(signal) {
  const wanted = rowsWanted(4 * ROWS);
  const answer = await ask("report", { guid: where.guid, limit: wanted }, signal);
  const one = answer.reports[0];
  if (!one) {
    return { answers: [answer], title: "No such report", about: "", content: [el("p", { className: "view", textContent: "There is no report of that name: it was removed, is older than the collector keeps, or is of another team." })] };
  }
  const most = Math.max(...answer.rows.map((each) => each.live_bytes), 0);
  const columns = [["Stack", "wideCell"], ["Live", "number barred"], ["Blocks", "number wide"], ["At the peak", "number wide"], ["Allocated", "number wide"], ["Process", "wide clip"], ["Heap, type", "roomy clip"]];
  const rest = answer.rows.length >= wanted && wanted < 10000 ? [el("p", { className: "view" }, el("a", { textContent: `More than ${countText(wanted)}`, href: here({ rows: Math.min(10000, wanted * 4) }) }))] : [];
  return { answers: [answer], title: `Report of ${nameText(one.program)}, ${momentText(one.time_ms)}`, about: "",
    content: [facts(one), table("Rows of the report", columns, answer.rows.map((each) => stackRow(each, most))), ...rest] };
}
