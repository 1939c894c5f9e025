// A person at the live page: contexts of some width and colour, orders to the test that holds the program, axe. Used by the drivers beside it.
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { readFile } from "node:fs/promises";
import { launch, PATIENCE_MS } from "./browser.js";

const axe = createRequire(import.meta.url).resolve("axe-core/axe.min.js");

// Let `act` use the page; what it answers is printed, with what the page complained of, whom it asked, and its faults.
export async function visit(act) {
  const [url, folder] = process.argv.slice(2);
  const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  const browser = await launch();
  const seen = { complaints: [], faults: [] };
  const asked = new Set();
  const visitor = {
    url,
    // A page at `address` when it shows `ready`: its processes are there.
    async open(width, colorScheme, address = url, ready = "#rows tr") {
      const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme });
      const page = await context.newPage();
      page.setDefaultTimeout(PATIENCE_MS);
      page.on("pageerror", (error) => seen.complaints.push(String(error)));
      page.on("console", (message) => message.type() === "error" && seen.complaints.push(message.text()));
      page.on("request", (request) => asked.add(new URL(request.url()).origin));
      await page.goto(address);
      await page.waitForSelector(ready);
      return page;
    },
    // Have the program do something; the test's answer.
    async tell(order) {
      process.stdout.write(JSON.stringify({ order }) + "\n");
      return (await lines.next()).value;
    },
    rows: (page) => page.$$eval("#rows tr", (all) => all.map((row) => row.innerText.replace(/\s+/g, " "))),
    says: (page, words) => page.waitForFunction((wanted) => document.getElementById("message").textContent.includes(wanted), words),
    shoot: (page, name) => page.screenshot({ path: `${folder}/${name}.png`, fullPage: true }),
    // Faults of accessibility, and what hangs out at the right.
    async check(page, where) {
      await page.evaluate(await readFile(axe, "utf8")).catch(() => {});
      const found = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
      for (const one of found.violations) {
        seen.faults.push(`${where}: ${one.id}: ${one.nodes.slice(0, 3).map((node) => node.html).join(" ")}`);
      }
      const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      if (over > 0) { seen.faults.push(`${where}: ${over} pixels hang out`); }
    },
  };
  try {
    Object.assign(seen, await act(visitor));
  } catch (error) {
    throw new Error(await told(browser), { cause: error });
  } finally {
    await browser.close();
  }
  process.stdout.write(JSON.stringify({ ...seen, asked: [...asked] }) + "\n");
}

// Where each page stands, and what it says there: who waited in vain learns why.
async function told(browser) {
  const lines = [];
  for (const page of browser.contexts().flatMap((context) => context.pages())) {
    const texts = await page.$$eval("#message, #profile-about, #dumps-about, #uploads-about", (all) => all.map((one) => `${one.id}: ${one.textContent}`)).catch(String);
    lines.push(page.url(), ...[texts].flat());
  }
  return "the pages say:\n" + lines.join("\n");
}

// The looks that a page is kept in.
export const LOOKS = [[1280, "light"], [1280, "dark"], [400, "light"], [400, "dark"]];
