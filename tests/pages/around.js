// around.js URL DIR: callers and callees of functions on the live page over tests/e2e/around_test.py's program, by every way that leads there.
import { LOOKS, visit } from "./visit.js";
import { aroundOf } from "./trees.js";

await visit(async ({ open, shoot, check, url }) => {
  const answer = {};
  const where = (page) => page.textContent("#where");
  const whereIs = (page, words) => page.waitForFunction((wanted) => document.getElementById("where").textContent.startsWith(wanted), words);
  const look = (page) => page.evaluate(`import("/profile.js").then((profile) => (${aroundOf})(profile.shown()))`);
  const top = (page) => page.evaluate(() => document.getElementById("graph-box").getBoundingClientRect().top);
  for (const [width, scheme] of [...LOOKS, [1700, "dark"]]) {
    const page = await open(width, scheme);
    await whereIs(page, "Click");
    const before = await top(page);
    const isBeside = await page.isVisible("#functions");
    if (isBeside) { answer.beside = width; } else { await page.keyboard.press("2"); }
    await page.click("#functions button:text-is('leaf')");
    await whereIs(page, "Callers and callees of leaf");
    if (isBeside) { answer.chosen = await page.$$eval("#functions tr.chosen", (all) => all.map((row) => row.innerText.replace(/\s+/g, " ").trim())); }
    if (width > 400) { answer.moved = Math.abs(await top(page) - before); }
    await check(page, `around ${width} ${scheme}`);
    await shoot(page, `around-${width}-${scheme}`);
    answer.leaf = await look(page);
    await page.click("#whole");
    answer.left = await where(page);
    await page.close();
  }
  const page = await open(1280, "light");
  await whereIs(page, "Click");
  await page.uncheck("#follow");
  // By a key, from the frame that the arrows reached; what zooms stays on its side.
  const walkTo = async (key, name) => {
    for (let i = 0; i < 40 && !(await page.textContent("#frame-name")).startsWith(name); i++) { await page.keyboard.press(key); }
  };
  await page.focus("#graph");
  await walkTo("ArrowDown", "main");
  await page.keyboard.press("ArrowDown"); // the largest: large
  await walkTo("ArrowRight", "small");
  await page.keyboard.press("c");
  answer.byKey = await where(page);
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("c");
  await whereIs(page, "Callers and callees of leaf");
  await page.keyboard.press("ArrowUp"); // large
  await walkTo("ArrowRight", "small");
  answer.caller = await look(page);
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("Enter");
  answer.zoomed = (await where(page)).replace(/^.*main/, "main");
  await page.keyboard.press("Escape");
  await page.keyboard.press("Escape");
  answer.escaped = await where(page);
  // By the button of the details; the browser's Back leaves it.
  await walkTo("ArrowDown", "main");
  await page.keyboard.press("ArrowDown");
  await walkTo("ArrowRight", "small");
  await page.keyboard.press("Enter");
  await page.click("#around");
  answer.byButton = await where(page);
  await page.goBack();
  // The address changes before the page hears of it: a key in between would be for the page of before.
  await page.waitForFunction(() => !document.getElementById("where").textContent.startsWith("Callers"));
  await page.keyboard.press("Escape");
  answer.back = await where(page);
  // By the address alone, of a function that calls itself.
  await page.keyboard.press("2");
  await page.click("#functions button:text-is('again')");
  answer.address = page.url();
  await page.goto("about:blank");
  await page.goto(answer.address);
  await whereIs(page, "Callers and callees of again");
  answer.byAddress = await where(page);
  answer.again = await look(page);
  await page.evaluate(() => { location.hash = "function=leaf"; });
  await whereIs(page, "Callers and callees of leaf");
  answer.byName = await where(page);
  await page.evaluate(() => { location.hash = "function=nobody"; });
  await whereIs(page, "No stack");
  answer.none = await where(page);
  await page.evaluate(() => { location.hash = "metric=total-bytes&function=small"; });
  await whereIs(page, "Callers and callees of small");
  answer.total = await look(page);
  await page.keyboard.press("?");
  answer.listed = (await page.textContent("#keys")).includes("callers and callees");
  return answer;
});
