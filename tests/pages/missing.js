// missing.js URL DIR: what the live page says of events and memory that nobody saw, and of each process at the tree's peak; screenshots go to DIR.
import { launch, PATIENCE_MS } from "./browser.js";

const [url, folder] = process.argv.slice(2);
const browser = await launch();
const answer = { complaints: [], overflow: [] };

for (const [width, colorScheme] of [[1280, "light"], [1280, "dark"], [1000, "light"], [700, "light"], [400, "dark"]]) {
  const page = await (await browser.newContext({ viewport: { width, height: 900 }, colorScheme })).newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  page.on("pageerror", (error) => answer.complaints.push(String(error)));
  page.on("console", (message) => message.type() === "error" && answer.complaints.push(message.text()));
  await page.goto(url);
  await page.waitForSelector("#rows tr");
  await page.waitForSelector("#uncovered:not([hidden])");
  await page.waitForFunction(() => document.getElementById("frame-name").textContent !== "");
  answer.uncovered = await page.textContent("#uncovered");
  answer.incomplete = await page.textContent("#incomplete");
  answer.totals = await page.$$eval("#totals div", (all) => Object.fromEntries(all.map((one) => [one.children[0].textContent, one.children[1].textContent])));
  answer.ended = (await page.textContent("label:has(#ended)")).trim();
  const titles = await page.$$eval("#table thead th", (all) => all.map((one) => one.textContent));
  answer.rows = await page.$$eval("#rows tr", (all) => all.map((row) => [...row.children].map((cell) => cell.textContent.trim())));
  answer.rows = answer.rows.map((cells) => Object.fromEntries(cells.map((cell, at) => [titles[at], cell])));
  answer.overflow.push(await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth));
  await page.screenshot({ path: `${folder}/${width}${colorScheme}.png` });
}
await browser.close();
process.stdout.write(JSON.stringify(answer) + "\n");
