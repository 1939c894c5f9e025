// Machines: of a program, which deviate first; or of one stack.
import { ask } from "/ask.js";
import { momentText } from "/api.js";
import { bar, el, table } from "/dom.js";
import { clean, flameLink, framesOf, name, nameText, remember, stackCell, stackText } from "/names.js";
import { here, link, rowsWanted, times, where } from "/where.js";

const ROWS = 100;
const DEVIATES_BY = 10; // docs/schemas/fleet.json

// The frames of the stack that the address names; those of a link from elsewhere are among the largest, or nobody knows them here.
async function framesOfStack(signal) {
  if (!framesOf(where.stack)) {
    const { program, build, control } = where;
    remember((await ask("top", { program, build, control, ...times() }, signal)).stacks);
  }
  return framesOf(where.stack);
}

function row(one, most) {
  const reports = link({ view: "reports", host: one.host, build: "", stack: where.stack });
  return [
    el("div", {}, one.host ? el("a", { className: "name-link", href: reports, data: { row: "" } }, name(one.host)) : name(""), one.deviates ? el("span", { className: "badge", textContent: "deviates" }) : null),
    el("div", {}, sizeText(one.most_live_bytes), bar(one.most_live_bytes, most, one.deviates ? "odd" : "")),
    sizeText(one.mean_live_bytes),
    one.host ? el("a", { textContent: countText(one.dumps), href: reports }) : countText(one.dumps),
    name(one.build_id, { className: "id" }),
    momentText(one.last_ms),
  ];
}

function sentence(answer) {
  const median = answer.control_median_live_bytes;
  if (median === null) {
    return "No report of it was made by chance, so nobody can say what is usual: the machines stand by their largest report. A `control` in their triggers\u2019 file makes such reports.";
  }
  const odd = answer.hosts.filter((one) => one.deviates).length;
  const usual = `Half of ${where.host ? "this machine\u2019s" : "the"} control reports hold at most ${sizeText(median)}.`;
  return `${odd === 0 ? "No machine deviates" : odd === 1 ? "1 machine deviates" : `${countText(odd)} machines deviate`}. ${usual} Who has over ${DEVIATES_BY} times that in a report deviates.`;
}

export async function show(signal) {
  const shown = rowsWanted(ROWS);
  const { program, build, host, stack, control } = where;
  if (!program && !stack) {
    const answer = await ask("programs", { limit: 1000 }, signal);
    const links = answer.programs.map((one) => el("li", {}, el("a", { href: link({ view: "hosts", program: one.program, build: "" }), data: { row: "" } }, name(one.program)), ` ${countText(one.hosts)}`));
    return { answers: [answer], title: "Machines", about: "Machines are compared within a program: which one?", content: [el("ul", { className: "choices view" }, ...links)] };
  }
  const answer = await ask("hosts", { program, build, host, stack, control, ...times(), limit: shown }, signal);
  const frames = stack ? await framesOfStack(signal) : null;
  const most = Math.max(...answer.hosts.map((one) => one.most_live_bytes), 0);
  const columns = [["Machine", "wideCell"], ["Largest", "number barred", "Live in one report"], ["Mean", "number", "Of its reports"], ["Reports", "number"], ["A build of it", "wide"], ["Newest report", "wide"]];
  const about = stack ? `Machines whose reports hold ${frames ? stackText(frames) : "this stack"}, by the largest of one report.` : sentence(answer);
  const head = stack ? [el("div", { className: "view chosen-stack" }, frames
    ? stackCell(frames, [["In the flame graph", flameLink(frames)], ["Reports that have it", link({ view: "reports", stack })], ["All machines", link({ view: "hosts" })]])
    : el("p", { textContent: `Stack ${clean(stack)}: it is not among those that hold most here, so its frames are not known.` }))] : [];
  const rest = answer.hosts.length >= shown && shown < 10000 ? [el("p", { className: "view" }, el("a", { textContent: `More than ${countText(shown)}`, href: here({ rows: Math.min(10000, shown * 4) }) }))] : [];
  return { answers: [answer], title: stack ? "Machines with a stack" : `Machines with ${nameText(program)}`, about,
    content: [...head, answer.hosts.length ? table("Table of machines", columns, answer.hosts.map((one) => row(one, most))) : el("p", { className: "view", textContent: "No machine has sent a report of this selection." }), ...rest] };
}
