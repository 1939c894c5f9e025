// flame.js URL [SCREENSHOT]: use our flame graph as a person would.
import { withPage } from "./browser.js";

const [url, screenshot] = process.argv.slice(2);

await withPage(url, async (page) => {
  const text = (id) => page.textContent(`#${id}`);
  const shown = async () => ({ name: await text("name"), figures: await text("figures"), where: await text("where"), hash: decodeURIComponent(await page.evaluate(() => location.hash)) });
  const answer = { title: await text("title"), about: await text("about"), views: await page.$$eval("#view option", (all) => all.map((one) => one.textContent)) };
  answer.first = await shown();
  answer.rows = await page.evaluate(() => graph.rows.length);
  answer.milliseconds = await page.evaluate(() => performance.now());
  // The pointer: what is under it is told beside it, within the window.
  const at = await page.$eval("#graph", (canvas) => { const box = canvas.getBoundingClientRect(); return { x: box.left, y: box.top, width: box.width }; });
  await page.mouse.move(at.x + at.width - 5, at.y + 27);
  answer.tip = await page.$eval(".tip", (tip) => { const box = tip.getBoundingClientRect(); return { text: tip.textContent, hidden: tip.hidden, within: box.left >= 0 && box.right <= innerWidth && box.bottom <= innerHeight }; });
  await page.mouse.move(1, 1);
  answer.away = await page.$eval(".tip", (tip) => tip.hidden);
  answer.legend = await text("legend");
  // Plumbing: not there, and there; the figures stay.
  const plumbing = () => page.evaluate(() => { const names = []; const walk = (node) => { names.push(node.name); node.sorted.forEach(walk); }; walk(graph.tree); return { names, values: graph.tree.values }; });
  answer.without = await plumbing();
  await page.keyboard.press("l");
  answer.with = await plumbing();
  answer.pressed = await page.$eval("#plumbing", (one) => one.getAttribute("aria-pressed"));
  await page.keyboard.press("l");
  // Keyboard: in, zoomed, and all the way out again.
  await page.focus("#graph");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  answer.zoomed = await shown();
  await page.keyboard.press("Escape");
  answer.out = await shown();
  await page.keyboard.press("m");
  answer.metric = await page.$eval("#metric", (one) => one.selectedOptions[0].textContent);
  await page.selectOption("#metric", "4");
  answer.total = await shown();
  await page.click("#invert");
  answer.inverted = await shown();
  answer.innermost = await page.evaluate(() => graph.tree.sorted[0].name);
  await page.click("#invert");
  await page.fill("#search", "main");
  answer.found = await text("found");
  await page.fill("#search", "(");
  answer.refused = await text("found");
  await page.fill("#search", "main");
  // The address alone brings the same back.
  const address = await page.evaluate(() => location.href);
  await page.goto("about:blank");
  await page.goto(address);
  answer.again = { found: await text("found"), metric: await page.$eval("#metric", (one) => one.selectedOptions[0].textContent) };
  if ((await page.$$("#view option")).length > 1) {
    await page.selectOption("#view", "1");
    answer.process = await shown();
  }
  await page.goto(url.split("#")[0]);
  answer.metrics = await page.$$eval("#metric option", (all) => all.map((one) => one.textContent));
  if (answer.metrics.includes("Waste bytes")) {
    await page.selectOption("#metric", "7");
    answer.waste = await shown();
    answer.wasteful = await page.evaluate(() => ({ width: graph.tree.width, values: graph.tree.values }));
    await page.goto(url.split("#")[0]);
  }
  if (screenshot) {
    await page.screenshot({ path: screenshot.replace(".png", "-light.png") });
    await page.emulateMedia({ colorScheme: "dark" });
    await page.reload();
    await page.click("#flip");
    await page.fill("#search", "mall|alloc");
  }
  return answer;
}, screenshot);
