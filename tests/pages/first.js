// first.js URL COUNT: from the start of the navigation to the first flame graph seen and to what lies before, in milliseconds, a visit
// each; called by tools/dev/page_cost.
import { chromium } from "playwright-core";

const [url, count] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
const rounds = [];
for (let round = 0; round < Number(count); round++) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  const page = await context.newPage();
  await page.goto(url, { waitUntil: "commit", timeout: 120000 });
  // host/page/web/profile.js sets the mark behind the frame that shows it; everything counts from the start of the navigation.
  await page.waitForFunction(() => performance.getEntriesByName("first flame graph").length, null, { polling: 50, timeout: 120000 });
  rounds.push(await page.evaluate(() => {
    const entry = (path) => performance.getEntriesByType("resource").find((one) => new URL(one.name).pathname === path);
    const profile = entry("/api/v1/profile");
    const script = performance.getEntriesByType("resource").filter((one) => one.name.endsWith(".js"));
    return {
      scripts: Math.max(...script.map((one) => one.responseEnd)),
      session: entry("/api/v1/session").startTime,
      asked: profile.startTime,
      answered: profile.responseEnd,
      seen: performance.getEntriesByName("first flame graph")[0].startTime,
    };
  }));
  await context.close();
}
await browser.close();
process.stdout.write(JSON.stringify(rounds));
