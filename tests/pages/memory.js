// memory.js URL DIR: what the memory of a program with two readings is made of, in each look; then whose its heap is.
import { LOOKS, visit } from "./visit.js";

await visit(async ({ open, shoot, check, url }) => {
  const answer = {};
  for (const [width, scheme] of LOOKS) {
    const page = await open(width, scheme);
    await page.keyboard.press("5");
    await page.waitForSelector("#memory-chart svg path");
    await page.click("#memory-parts button:text-is('heap')");
    await page.waitForFunction(() => document.getElementById("memory-of-stacks").textContent.includes("MiB"));
    await check(page, `memory ${width} ${scheme}`);
    await shoot(page, `memory-${width}-${scheme}`);
    answer.areas = await page.$$eval("#memory-chart path", (all) => all.map((one) => one.dataset.component));
    answer.parts = await page.$$eval("#memory-bars tbody tr:first-child .parts button", (all) => all.map((one) => Number(one.dataset.bytes)));
    answer.readings = await page.evaluate(async () => (await (await fetch("/api/v1/memory")).json()).readings);
  }
  // One process: the same component, of it alone.
  const page = await open(1280, "light", url);
  await page.keyboard.press("5");
  await page.click("#memory-bars .parts button[aria-label^='heap']");
  await page.waitForFunction(() => document.getElementById("memory-of-title").textContent.includes("python3"));
  await page.waitForFunction(() => document.getElementById("memory-of-stacks").textContent.includes("MiB"));
  answer.title = await page.textContent("#memory-of-title");
  answer.stacks = await page.textContent("#memory-of-stacks");
  answer.pressed = await page.getAttribute("#memory-bars .parts button[aria-label^='heap']", "aria-pressed");
  await page.click("#memory-of-heap");
  await page.waitForSelector("#flame-view:not([hidden])");
  return answer;
});
