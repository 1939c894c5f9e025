// live.js URL DIR: use the live page over a run of tests/e2e/page_test.py, as a person would; screenshots go to DIR. What the program
// shall do meanwhile is written to stdout, a line each; the test answers with a line on stdin when it is done.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { launch, PATIENCE_MS } from "./browser.js";

const [url, folder] = process.argv.slice(2);
const axe = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const tell = async (order) => { process.stdout.write(JSON.stringify({ order }) + "\n"); return (await lines.next()).value; };
const browser = await launch();
const complaints = [];
const asked = new Set();
const answer = { faults: [] };

async function open(width, colorScheme, address) {
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme, timezoneId: "Asia/Kolkata" });
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  page.on("request", (request) => asked.add(new URL(request.url()).origin));
  await page.goto(address);
  await page.waitForSelector("#rows tr");
  await page.waitForFunction(() => document.getElementById("frame-name").textContent !== "" || location.hash.includes("tab="));
  return page;
}

const rowsOf = (page) => page.$$eval("#rows tr", (all) => all.map((row) => row.innerText.replace(/\s+/g, " ")));

// Faults of accessibility, as axe finds them.
async function check(page, where) {
  await page.evaluate(await (await import("node:fs/promises")).readFile(axe, "utf8")).catch(() => {});
  const found = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
  for (const one of found.violations) {
    answer.faults.push(`${where}: ${one.id}: ${one.nodes.slice(0, 3).map((node) => node.html).join(" ")}`);
  }
}

try {
  const page = await open(1280, "light", url);
  answer.address = page.url();
  answer.title = await page.title();
  answer.rows = await rowsOf(page);
  await page.screenshot({ path: `${folder}/1280-light.png`, fullPage: true });
  await check(page, "flame graph");

  // A dump is saved, and opened in the same page; what leaks behind it is found by comparing.
  await page.keyboard.press("d");
  await page.waitForFunction(() => document.getElementById("message").textContent.startsWith("Saved"));
  answer.saved = await page.textContent("#message");
  await tell("leak");
  await page.keyboard.press("4");
  await page.waitForSelector("#dumps tr");
  await page.screenshot({ path: `${folder}/1280-dumps.png`, fullPage: true });
  await check(page, "dumps");
  const download = page.waitForEvent("download");
  await page.selectOption("#dumps select", "collapsed");
  answer.download = (await download).suggestedFilename();
  await page.click("#dumps button:has-text('Since then')");
  await page.waitForFunction(() => document.getElementById("profile-about").textContent.startsWith("What changed"));
  answer.about = await page.textContent("#profile-about");
  await page.keyboard.press("2");
  await page.waitForSelector("#functions tr");
  answer.changed = await page.$$eval("#functions tr", (all) => all.slice(0, 40).map((row) => row.innerText.replace(/\s+/g, " ")));
  await page.screenshot({ path: `${folder}/1280-diff-functions.png`, fullPage: true });
  await check(page, "functions");
  await page.keyboard.press("1");
  await page.screenshot({ path: `${folder}/1280-diff.png`, fullPage: true });
  await page.selectOption("#before", "");

  // One process by keyboard, a function by search; the address alone brings the same view back.
  await page.waitForFunction(() => document.getElementById("profile-about").textContent.startsWith("Dump of"));
  await page.evaluate(() => document.activeElement.blur());
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  await page.waitForFunction(() => !document.getElementById("flame-view").classList.contains("waiting"));
  answer.selected = await page.textContent("#detail-title");
  await page.keyboard.press("/");
  await page.keyboard.type("leak_here|PyByteArray_Resize");
  await page.waitForFunction(() => /%/.test(document.getElementById("found").textContent));
  answer.found = await page.textContent("#found");
  answer.address2 = page.url();
  await page.goto("about:blank");
  await page.goto(answer.address2);
  await page.waitForFunction(() => /%/.test(document.getElementById("found").textContent));
  answer.again = { title: await page.textContent("#detail-title"), found: await page.textContent("#found") };

  // Stop it, record it again in a clean profile.
  await page.evaluate(() => document.activeElement.blur());
  await page.keyboard.press("s");
  await page.waitForFunction(() => document.getElementById("message").textContent.includes("no more"));
  await page.waitForSelector("tr.chosen button:text-is('Record')");
  await page.keyboard.press("s");
  await page.waitForSelector("#record[open]");
  await page.fill("#record-bytes", "1");
  await page.screenshot({ path: `${folder}/1280-record.png` });
  await page.click("#record button.primary");
  await page.waitForFunction(() => document.getElementById("message").textContent.includes("from now on"));
  await page.waitForSelector("tr.chosen button:has-text('Stop')");

  // The timeline knows what was before the page was opened; a span over a leak says which function grew.
  await page.keyboard.press("a");
  await page.keyboard.press("3");
  await page.reload();
  const pointsAre = (count) => page.waitForFunction((wanted) => document.querySelectorAll("#rows tr").length && window.points >= wanted, count);
  await page.evaluate(() => { window.points = 0; new EventSource("/api/v1/events").addEventListener("update", () => { window.points++; }); });
  await page.waitForFunction(() => document.getElementById("timeline-about").textContent.startsWith("What was live"));
  answer.marks = await page.evaluate(() => document.getElementById("chart").dataset.marks);
  answer.together = await page.evaluate(async () => (await import("/timeline.js")).markText([
    { kind: "+ ", what: "processes", text: "+ a 1" }, { kind: "", what: "dumps", text: "dump 1 asked" }, { kind: "+ ", what: "processes", text: "+ b 2" },
    { kind: "\u2212 ", what: "processes", text: "\u2212 c 3" },
  ]));
  answer.remembered = await page.evaluate((now) => now - Number(document.getElementById("chart").dataset.from), Date.now());
  await pointsAre(2);
  const before = Date.now();
  await page.waitForTimeout(1000);
  await tell("leak");
  await page.evaluate(() => { window.points = 0; });
  await pointsAre(3);
  const box = await page.locator("#chart .u-over").boundingBox();
  const [first, last] = await page.evaluate(() => ["from", "to"].map((name) => Number(document.getElementById("chart").dataset[name])));
  await page.mouse.move(box.x + box.width * (before - first) / (last - first), box.y + 50);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width - 3, box.y + 80, { steps: 5 });
  await page.mouse.up();
  await page.waitForSelector("#span li");
  answer.span = await page.$$eval("#span li", (all) => all.map((one) => one.innerText));
  await page.screenshot({ path: `${folder}/1280-timeline.png`, fullPage: true });
  await check(page, "timeline");
  answer.address3 = page.url();

  // A process that comes, and one that goes.
  await tell("come");
  await page.waitForFunction((count) => document.querySelectorAll("#rows tr").length > count, answer.rows.length);
  await tell("go");
  await page.waitForFunction((count) => document.querySelectorAll("#rows tr").length <= count, answer.rows.length);
  await page.check("#ended");
  await page.waitForFunction(() => document.querySelector("#rows tr.over"));
  answer.ended = (await rowsOf(page)).length;

  for (const [width, scheme] of [[1280, "dark"], [400, "light"], [400, "dark"]]) {
    const other = await open(width, scheme, url);
    await other.waitForTimeout(2500);
    await other.screenshot({ path: `${folder}/${width}-${scheme}.png`, fullPage: true });
    answer[`overflow${width}${scheme}`] = await other.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    await check(other, `${width} ${scheme}`);
    // The same span by its address alone.
    await other.goto("about:blank");
    await other.goto(answer.address3);
    await other.waitForSelector("#span li");
    await other.waitForTimeout(500);
    await other.screenshot({ path: `${folder}/${width}-${scheme}-timeline.png`, fullPage: true });
    answer.overflow = Math.max(answer.overflow ?? 0, await other.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth));
    await check(other, `${width} ${scheme} timeline`);
    await other.context().close();
  }
} finally {
  await browser.close();
}
process.stdout.write(JSON.stringify({ complaints, asked: [...asked], ...answer }) + "\n");
