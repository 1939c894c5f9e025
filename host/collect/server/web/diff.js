// What holds another share in one build than in another, with how sure that is.
import { ask } from "/ask.js";
import { el, bar, table } from "/dom.js";
import { buildId, buildText, flameLink, countedText, nameText, name, remember, stackCell } from "/names.js";
import { metric } from "/overview.js";
import { here, link, rowsWanted, times, where } from "/where.js";

const ROWS = 50;
const CERTAIN = 1e-4; // q below it is told so

const partText = (share) => `${(100 * share).toFixed(share < 0.01 ? 2 : 1)} %`;
const changeText = (change) => `${change < 0 ? "\u2212" : "+"}${(100 * Math.abs(change)).toFixed(2)} points`;
const qText = (q) => q < CERTAIN ? "< 0.0001" : q.toFixed(q < 0.01 ? 4 : 2);

function verdict(one) {
  if (!one.differs) { return el("span", { className: "faint", textContent: "as before" }); }
  return one.share_after > one.share_before ? el("b", { className: "grew", textContent: "\u25b2 grew" }) : el("b", { className: "shrank", textContent: "\u25bc shrank" });
}

function row(one, most) {
  const links = [["Machines of the later build that hold it", link({ view: "hosts", build: where.other, stack: one.stack })], ["In the flame graph of both", flameLink(one.frames, { other: where.other, control: "1" })]];
  return [
    el("div", {}, stackCell(one.frames, links), el("div", { className: "tag below", textContent: `${partText(one.share_before)} \u2192 ${partText(one.share_after)}, q ${qText(one.q)}` })),
    verdict(one),
    el("div", {}, partText(one.share_before), bar(one.share_before, most, "before")),
    el("div", {}, partText(one.share_after), bar(one.share_after, most)),
    changeText(one.share_after - one.share_before), one.z.toFixed(1).replace("-", "\u2212"), qText(one.q),
  ];
}

// Whose shares, and which reports have none of it.
const WHOLES = { live: "live bytes", peak: "peak", total: "allocated bytes" };
const untoldText = (answer) => answer.untold_before + answer.untold_after ? ` ${countedText(answer.untold_before + answer.untold_after, "control report")} more of both ${answer.untold_before + answer.untold_after === 1 ? "says" : "say"} no ${answer.metric}.` : "";

// Which side lacks how many, in words.
function tooFew(answer, names) {
  const sides = [[names[0], answer.dumps_before], [names[1], answer.dumps_after]];
  const lacking = sides.filter(([, count]) => count < answer.dumps_least).map(([text, count]) => `${countText(answer.dumps_least - count)} more of ${text}`);
  return el("div", { className: "view" },
    el("p", { className: "strong", textContent: "Too few reports for a verdict." }),
    el("p", { textContent: `${sides.map(([text, count]) => `${text} has ${countText(count)} control ${count === 1 ? "report" : "reports"}`).join(", ")}. A verdict needs ${countText(answer.dumps_least)} of each build: ${lacking.join(" and ")}.` }),
    el("p", { className: "faint", textContent: "Control reports are those made by chance: \u201ccontrol\u201d in the triggers\u2019 file of the machines. A trigger\u2019s reports show those machines that grew, and would tell of the trigger." }),
    el("p", {}, el("a", { textContent: "The flame graph of both", href: link({ view: "flame", other: where.other }) }), " shows all their reports side by side, without a verdict.", untoldText(answer)));
}

// Two builds are there to be chosen.
async function choose(signal) {
  const answer = where.program ? await ask("builds", { program: where.program, limit: 100 }, signal) : await ask("programs", { limit: 1000 }, signal);
  if (!where.program) {
    const links = answer.programs.filter((one) => one.builds > 1).map((one) => el("li", {}, el("a", { href: link({ view: "diff", program: one.program, build: "" }), data: { row: "" } }, name(one.program)), ` ${countText(one.builds)} builds`));
    return { answers: [answer], title: "What changed", about: links.length ? "Builds are compared within a program: which one?" : "No program has two builds yet.", content: [el("ul", { className: "choices view" }, ...links)] };
  }
  const pairs = answer.builds.slice(0, -1).map((one, i) => [answer.builds[i + 1], one]);
  const links = pairs.map(([before, after]) => el("li", {}, el("a", { data: { row: "" }, href: link({ view: "diff", build: buildId(before), other: buildId(after) }) },
    el("bdi", { textContent: buildText(before) }), " \u2192 ", el("bdi", { textContent: buildText(after) })),
  ` ${countText(before.control?.dumps || 0)} and ${countText(after.control?.dumps || 0)} control reports`));
  return { answers: [answer], title: `What changed in ${nameText(where.program)}`, about: links.length ? "Choose two builds above, or one of these:" : "It has one build yet: a second one is wanted.", content: [el("ul", { className: "choices view" }, ...links)] };
}

export async function show(signal) {
  const { program, build, other } = where;
  if (!program || !build || !other) { return choose(signal); }
  const shown = rowsWanted(ROWS);
  const [answer, builds] = await Promise.all([ask("diff", { program, build, other, metric: metric(), ...times(), limit: shown }, signal), ask("builds", { program, limit: 1000 }, signal)]);
  remember(answer.stacks);
  const names = [build, other].map((id) => buildText(builds.builds.find((one) => buildId(one) === id) || { build_id: id }));
  const title = `What changed in ${nameText(program)}`;
  if (answer.too_few) { return { answers: [answer], title, about: `${names[0]} \u2192 ${names[1]}`, content: [tooFew(answer, names)] }; }
  const most = Math.max(...answer.stacks.map((one) => Math.max(one.share_before, one.share_after)), 0);
  const differing = answer.stacks.filter((one) => one.differs).length;
  const about = `${differing ? `${countText(differing)} of ${countText(answer.stacks_compared)} stacks` : `None of ${countText(answer.stacks_compared)} stacks`} ${differing === 1 ? "holds" : "hold"} another share of a report than before, in ${countText(answer.dumps_before)} and ${countText(answer.dumps_after)} control reports. Shares are of one whole: where one grows, others shrink.${untoldText(answer)}`;
  const columns = [["Stack", "wideCell"], ["Verdict", ""], [names[0], "number barred wide", `Mean share of a control report\u2019s ${WHOLES[answer.metric]}`], [names[1], "number barred wide", "Likewise, of the later build"], ["Change", "number"],
    ["z", "number wide", "The difference in its standard errors"], ["q", "number wide", "The share of false ones among all that differ at least so surely; below 0.05 it differs"]];
  const rest = answer.stacks.length >= shown && answer.stacks_compared > shown && shown < 10000 ? [el("p", { className: "view" }, el("a", { textContent: `More than ${countText(shown)}`, href: here({ rows: Math.min(10000, shown * 4) }) }))] : [];
  return { answers: [answer], title, about, content: [table("Table of stacks in both builds", columns, answer.stacks.map((one) => row(one, most))), ...rest] };
}
