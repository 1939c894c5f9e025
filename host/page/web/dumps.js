// The dumps that there are: save, open, compare, download.
import { state, change } from "./state.js";
import { get, post, query, momentText } from "./api.js";
import * as processes from "./processes.js";
import * as profile from "./profile.js";
import { whyLost } from "./lost.js";

const at = (id) => document.getElementById(id);
const FORMATS = ["perfetto", "pprof", "html", "json", "chrome", "collapsed", "heap", "sqlite"];
let list = [];
let say = () => {};

export const dumps = () => list;

export function init(onSay) { say = onSay; }

export async function load() {
  const answer = await get("/api/v1/dumps");
  list = answer.dumps;
  at("dumps-about").textContent = list.length ? `In ${answer.folder}` : "No dump yet. One is taken when the run ends, and whenever you save one.";
  profile.offer(list);
  draw();
}

export async function save() {
  const pids = processes.chosenPids();
  const button = at("save");
  button.disabled = true;
  say("Saving a dump \u2026");
  try {
    const made = await post(query("/api/v1/dumps", { pid: pids.join(",") }));
    await load();
    const size = list.find((one) => one.id === made.id)?.bytes || 0;
    say(`Saved ${made.path}, ${sizeText(size)}${made.complete ? "" : "; not complete: " + made.trouble}`);
  } catch (error) {
    say(error.message, true);
  } finally {
    button.disabled = Boolean(whyLost());
  }
}

function draw() {
  at("dumps").replaceChildren(...list.toReversed().map((one) => {
    const tr = document.createElement("tr");
    const open = document.createElement("button");
    open.textContent = "Open";
    open.setAttribute("aria-label", `Open dump ${one.id}`);
    open.onclick = () => change({ dump: one.id, before: "", tab: "" });
    const compare = document.createElement("button");
    compare.textContent = "Since then";
    compare.setAttribute("aria-label", `What changed since dump ${one.id}`);
    compare.onclick = () => change({ before: one.id, dump: "", tab: "" });
    const box = document.createElement("span");
    box.append(open, " ", compare);
    const select = document.createElement("select");
    select.setAttribute("aria-label", `Download dump ${one.id} as`);
    select.add(new Option("as \u2026", ""));
    FORMATS.forEach((format) => select.add(new Option(format, format)));
    for (const one of [open, compare, select]) { one.dataset.asks = ""; }
    select.onchange = () => { if (select.value) { location.href = query(`/api/v1/dumps/${one.id}`, { format: select.value }); select.value = ""; } };
    const taken = momentText(one.time_ms);
    const name = document.createElement("span");
    const below = document.createElement("span");
    below.className = "tag narrow";
    below.textContent = `${taken}, ${sizeText(one.bytes)}`;
    name.append(one.file, below);
    [name, taken, one.words ? `${one.reason}: ${one.words}` : one.reason, sizeText(one.bytes), box, select].forEach((content, number) => {
      const td = document.createElement("td");
      td.className = ["", "wide", "wide", "number wide", "choices", ""][number];
      td.append(content);
      tr.append(td);
    });
    return tr;
  }));
}
