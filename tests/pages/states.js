// states.js URL DIR: what the page says where there is nothing to show, or something goes wrong; by keyboard alone.
import { visit } from "./visit.js";

await visit(async ({ open, tell, rows, says, shoot, check, url }) => {
  const answer = {};
  const about = (page, words) => page.waitForFunction((wanted) => document.getElementById("profile-about").textContent.includes(wanted), words);

  // A stranger's address.
  const stranger = await open(1280, "light");
  await stranger.goto("about:blank");
  await stranger.context().clearCookies();
  await stranger.goto(url.replace(/token=.*/, "token=0"));
  answer.stranger = await stranger.innerText("body");
  await shoot(stranger, "states-stranger");
  await stranger.context().close();

  // Nobody is recorded; then the root is, and the one behind it is not: the graph is not the root's.
  const page = await open(1280, "light");
  await about(page, "No process is being recorded");
  await shoot(page, "states-nothing");
  await page.keyboard.press("j");
  await page.keyboard.press("s");
  await page.waitForSelector("#record[open]");
  await page.keyboard.press("Enter");
  await says(page, "from now on");
  await about(page, "1 process");
  await page.keyboard.press("j");
  await about(page, "is not recorded");
  answer.unrecorded = await page.textContent("#profile-about");
  answer.drawn = await page.isVisible("#graph");
  await check(page, "not recorded");
  await shoot(page, "states-not-recorded");

  // It ends while it is looked at.
  answer.pid = new URL(page.url()).hash.match(/pid=(\d+)/)[1];
  await tell(`end ${answer.pid}`);
  await page.waitForSelector("tr.chosen.over");
  await page.keyboard.press("s");
  await says(page, "has ended");
  answer.ended = await page.textContent("#message");

  // A filter that nobody passes.
  await page.keyboard.press("p");
  await page.keyboard.type("nobody is called so");
  await page.waitForSelector("#none:not([hidden])");
  answer.none = await page.textContent("#none");
  await check(page, "nobody");
  await page.keyboard.press("Control+A");
  await page.keyboard.press("Delete");
  await page.keyboard.press("Escape");

  // On a narrow screen whoever is shown has a number, and a button that can be reached.
  const narrow = await open(400, "light");
  answer.narrow = await rows(narrow);
  answer.hidden = await narrow.$$eval("#rows button", (all) => all.filter((one) => !one.hidden && one.getBoundingClientRect().right > innerWidth).length);
  await check(narrow, "narrow");
  await shoot(narrow, "states-narrow");

  // memlog is gone.
  await page.keyboard.press("a");
  await about(page, "1 process");
  await tell("leave");
  await says(page, "does not answer");
  answer.gone = await page.textContent("#message");
  answer.lost = await page.$$eval("[data-asks]", (all) => all.map((one) => [one.id || one.textContent, one.disabled, one.title]));
  answer.dots = await page.$$eval(".dot.on", (all) => all.length);
  answer.dotTitle = await page.getAttribute("#rows .dot", "title");
  await check(page, "gone");
  await page.keyboard.press("r");
  await about(page, "has the run ended?");
  answer.stays = await page.isVisible("#graph");
  await shoot(page, "states-gone");
  await page.keyboard.press("3");
  await page.waitForFunction(() => document.getElementById("timeline-about").textContent.includes("has the run ended?"));
  return answer;
});
