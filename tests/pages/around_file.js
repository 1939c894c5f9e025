// around_file.js URL SCREENSHOT: callers and callees in the page of a dump of tests/e2e/around_test.py's program.
import { withPage } from "./browser.js";
import { aroundOf } from "./trees.js";

const [url, screenshot] = process.argv.slice(2);

await withPage(url, async (page) => {
  const answer = {};
  const where = () => page.textContent("#where");
  const around = (name) => page.goto(`${url.split("#")[0]}#function=${encodeURIComponent(JSON.stringify([name, "known"]))}`).then(() => page.evaluate(`(${aroundOf})(graph)`));
  // By key from the frame of the search, and by Back out of it.
  await page.focus("#graph");
  while (!(await page.textContent("#name")).startsWith("leaf")) { await page.keyboard.press("ArrowDown"); }
  await page.keyboard.press("c");
  answer.byKey = await where();
  await page.goBack();
  // The address changes before the page hears of it.
  await page.waitForFunction(() => !document.getElementById("where").textContent.startsWith("Callers"));
  answer.back = await where();
  await page.keyboard.press("Escape");
  await page.keyboard.press("ArrowUp"); // nothing is outside of the root
  answer.outermost = await page.evaluate(() => graph.hovered === graph.tree);
  answer.leaf = await around("leaf");
  answer.again = await around("again");
  return answer;
}, screenshot);
