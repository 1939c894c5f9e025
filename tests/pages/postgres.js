// postgres.js URL DIR: PostgreSQL under pgbench: processes that come and go, roles by title, what the server's backends hold.
import { LOOKS, visit } from "./visit.js";

await visit(async ({ open, tell, rows, says, shoot, check, url }) => {
  const answer = {};
  const page = await open(1280, "light");
  await page.waitForFunction(() => document.getElementById("frame-name").textContent !== "");
  answer.idle = await rows(page);
  await tell("bench");
  // Backends come, by pgbench's connections; their titles tell.
  await page.waitForFunction((count) => document.querySelectorAll("#rows tr").length >= count + 3, answer.idle.length);
  answer.busy = await rows(page);
  await shoot(page, "postgres-1280-busy");
  await page.keyboard.press("2");
  await page.keyboard.press("l"); // plumbing, too: palloc is what PostgreSQL asks by
  await page.waitForSelector("#functions tr");
  answer.functions = await page.$$eval("#functions tr", (all) => all.slice(0, 60).map((row) => row.innerText.replace(/\s+/g, " ")));
  await page.fill("#search", "palloc|AllocSet");
  await page.waitForFunction(() => /\d/.test(document.getElementById("found").textContent));
  answer.found = await page.textContent("#found");
  await page.evaluate(() => document.activeElement.blur());
  await page.keyboard.press("d");
  await says(page, "Saved");
  await tell("rest");
  await page.waitForFunction((count) => document.querySelectorAll("#rows tr").length <= count, answer.idle.length);
  await page.check("#ended");
  await page.waitForFunction(() => document.querySelectorAll("#rows tr.over").length >= 3);
  answer.ended = await page.$$eval("#rows tr.over", (all) => all.length);
  for (const [width, scheme] of LOOKS) {
    const other = await open(width, scheme, url);
    await other.waitForFunction(() => document.getElementById("frame-name").textContent !== "");
    await shoot(other, `postgres-${width}-${scheme}`);
    await check(other, `postgres ${width} ${scheme}`);
    await other.context().close();
  }
  return answer;
});
