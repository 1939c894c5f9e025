// speedscope.js URL [SCREENSHOT]: open a profile in speedscope, as its npm package brings it.
import { withPage } from "./browser.js";

const [url, screenshot] = process.argv.slice(2);

await withPage(url, async (page) => {
  const messages = [];
  page.on("console", (message) => messages.push(message.text()));
  await page.waitForFunction(() => document.title !== "speedscope", null, { timeout: 120000 });
  await page.getByText("Sandwich").first().click();
  await page.waitForTimeout(500);
  return { title: await page.title(), text: await page.evaluate(() => document.body.innerText), messages };
}, screenshot);
