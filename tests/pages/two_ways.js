// two_ways.js URL DIR: look at a dump on the page by each order of frames; screenshots go to DIR. The answer: of each order the rows of the
// table with their figures, what memlog said of the outermost frames, and the frames that the arrow keys find below the root.
import { createRequire } from "node:module";
import { readFile } from "node:fs/promises";
import { launch, PATIENCE_MS } from "./browser.js";

const [url, folder] = process.argv.slice(2);
const axe = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
const browser = await launch();
const answer = { complaints: [], faults: [], orders: {} };

try {
  const page = await (await browser.newContext({ viewport: { width: 1280, height: 800 } })).newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  page.on("pageerror", (error) => answer.complaints.push(String(error)));
  page.on("console", (message) => message.type() === "error" && answer.complaints.push(message.text()));
  await page.goto(url + "#dump=0001");
  await page.waitForFunction(() => document.getElementById("frame-name").textContent !== "");
  const offered = await page.$$eval("#by option", (all) => all.map((one) => one.value));
  const ready = () => page.waitForFunction(() => !document.getElementById("flame-view").classList.contains("waiting"));
  for (const order of offered) {
    await page.selectOption("#by", order);
    await ready();
    await page.focus("#graph");
    await page.keyboard.press("ArrowUp");
    await page.keyboard.press("ArrowDown");
    const below = await page.textContent("#frame-name");
    await page.screenshot({ path: `${folder}/${order.replace(",", "-") || "plain"}.png`, fullPage: true });
    await page.click("#tabs button:has-text('Functions')");
    await ready();
    await page.waitForSelector("#functions tr");
    const title = await page.textContent("#row-title");
    const rows = await page.$$eval("#functions tr", (all) => all.map((row) => [row.children[0].innerText, row.children[2].innerText]));
    const told = await page.evaluate(async (by) => {
      const data = await (await fetch(`/api/v1/profile?dump=0001&by=${encodeURIComponent(by)}`)).json();
      const sums = {};
      const values = data.views[0].values;
      for (let i = 0; i < values.length; i += 7) {
        const path = [];
        for (let frame = values[i]; frame > 0; frame = data.frames[3 * (frame - 1)]) { path.unshift(data.names[data.frames[3 * (frame - 1) + 1]]); }
        const name = path.slice(0, by === "heap,type" ? 2 : 1).join(" / ");
        sums[name] = (sums[name] || 0) + values[i + 1];
      }
      return Object.fromEntries(Object.entries(sums).map(([name, bytes]) => [name, [bytes, sizeText(bytes)]]));
    }, order.replace("backtrace,", ""));
    answer.orders[order] = { below, title, rows, told, hash: new URL(page.url()).hash };
    await page.screenshot({ path: `${folder}/${order.replace(",", "-") || "plain"}-table.png`, fullPage: true });
    await page.click("#tabs button:has-text('Flame graph')");
    await ready();
  }
  // A row leads to its frames.
  await page.selectOption("#by", "heap,type");
  await ready();
  await page.click("#tabs button:has-text('Functions')");
  await page.click("#functions button:has-text('pool / Node')");
  await ready();
  answer.zoomed = await page.textContent("#where");
  await page.screenshot({ path: `${folder}/zoomed.png`, fullPage: true });
  await page.evaluate(await readFile(axe, "utf8"));
  const found = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
  answer.faults = found.violations.map((one) => one.id);
  answer.overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
} finally {
  await browser.close();
}
process.stdout.write(JSON.stringify(answer) + "\n");
