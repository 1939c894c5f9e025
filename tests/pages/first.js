// first.js URL ROUNDS: from the address to the first flame graph drawn, in milliseconds, a visit each; called by tools/page_cost.
import { chromium } from "playwright-core";

const [url, rounds] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
const times = [];
for (let round = 0; round < Number(rounds); round++) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  const page = await context.newPage();
  await page.goto(url, { waitUntil: "commit" });
  await page.waitForFunction(() => document.getElementById("frame-name")?.textContent, null, { polling: "raf" });
  times.push(await page.evaluate(() => performance.now()));
  await context.close();
}
await browser.close();
process.stdout.write(JSON.stringify(times));
