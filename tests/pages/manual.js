// manual.js URL DIR: a run in which nothing is recorded until somebody starts it, on the page; then a dump, opened there, and one sent.
import { LOOKS, visit } from "./visit.js";

await visit(async ({ open, tell, rows, says, shoot, check, url }) => {
  const answer = {};
  const page = await open(1280, "light");
  answer.before = await rows(page);
  await shoot(page, "manual-1280-nothing");
  await tell("leak"); // nobody sees it
  // The worker's row, its button, the dialog as it stands.
  const pid = await tell("who");
  await page.fill("#filter", pid);
  await page.waitForFunction(() => document.querySelectorAll("#rows tr").length === 1);
  await page.click("#rows button:text-is('Record')");
  await page.waitForSelector("#record[open]");
  answer.asks = await page.textContent("#record-about");
  await page.click("#record button.primary");
  await says(page, "from now on");
  await page.fill("#filter", "");
  await tell("leak");
  await page.click(`#rows tr:has-text("${pid}") .name button`);
  await page.keyboard.press("d");
  await says(page, "Saved");
  answer.saved = await page.textContent("#message");
  await page.keyboard.press("4");
  await page.click("#dumps button:has-text('Open')");
  await page.waitForFunction(() => location.hash.includes("dump=") && /\b1 process\b/.test(document.getElementById("profile-about").textContent)
    && !document.getElementById("flame-view").classList.contains("waiting"));
  answer.opened = await page.textContent("#profile-about");
  await shoot(page, "manual-1280-opened");
  await page.keyboard.press("2");
  await page.waitForSelector("#functions tr");
  answer.functions = await page.$$eval("#functions tr", (all) => all.map((row) => row.innerText.replace(/\s+/g, " ")));
  // Send one.
  await page.keyboard.press("4");
  await page.click("#send");
  await says(page, "leaves as soon as it can");
  await page.waitForSelector("#uploads-list li");
  answer.uploads = await page.textContent("#uploads-about");
  answer.history = await page.$$eval("#uploads-list li", (all) => all.map((one) => one.innerText));
  for (const [width, scheme] of LOOKS) {
    const other = await open(width, scheme, url + "#tab=dumps");
    await other.waitForSelector("#uploads-list li");
    await shoot(other, `manual-${width}-${scheme}-dumps`);
    await check(other, `dumps ${width} ${scheme}`);
    await other.context().close();
  }
  return answer;
});
