// fleet.js URL DIR: somebody looks for the fleet's memory, from the token to a single report; the collector goes away and comes back.
import { visit } from "./visit.js";
import { FORM, SHOWN, become, enter, hash, heading, rows, settled, text, withToken } from "./fleet_visit.js";

await visit(async ({ open, tell, shoot, check, url }) => {
  const answer = {};
  const read = await tell("read");

  // Tokens: none, a wrong one, one for sending, the right one; it is asked for once.
  const page = await open(1280, "light", `${url}#program=shopd`, FORM);
  await check(page, "token");
  await shoot(page, "fleet-token");
  const refused = async (token, words) => {
    await enter(page, token);
    await page.waitForFunction((wanted) => document.getElementById("token-about").textContent.includes(wanted), words);
    return page.textContent("#token-about");
  };
  answer.wrong = await refused("wrong", "does not know");
  answer.odd = await refused("w\u00f6rd", "does not know");
  answer.writes = await refused(await tell("write"), "for sending");
  await enter(page, read);
  await become(page, "shopd");
  answer.address = page.url();
  await page.reload();
  await become(page, "shopd");
  answer.asksAgain = await page.isVisible("#token");

  // In an address it is taken out at once, and the rest stays.
  const other = await open(1280, "light", withToken(url, "view=hosts&program=shopd", read), SHOWN);
  answer.taken = await hash(other);
  answer.history = await other.evaluate(() => history.length);
  answer.hosts = await rows(other);
  answer.hostsAbout = await other.textContent("#about-view");
  await other.context().close();

  // The first screen answers; then by keyboard into a stack, to its machines, their reports, one of them.
  await page.keyboard.press("a");
  await become(page, "The fleet");
  answer.sentence = await page.textContent(".sentence");
  answer.stacks = await page.$$eval("[aria-label='Table of stacks'] tbody tr", (all) => all.map((row) => row.innerText.replace(/\s+/g, " ")));
  answer.programs = await page.$$eval("[aria-label='Table of programs'] tbody tr", (all) => all.map((row) => row.innerText.replace(/\s+/g, " ")));
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.waitForSelector("details[open] .frames");
  answer.frames = await page.$$eval("details[open] .frames li", (all) => all.map((one) => one.textContent));
  await page.click("details[open] .links a:has-text('Machines')");
  await become(page, "Machines with a stack");
  answer.stackHosts = await rows(page);
  answer.stackAbout = await page.textContent("#about-view");
  answer.focused = await page.evaluate(() => document.activeElement.id);
  const stackAddress = await hash(page);
  await page.click("#content a.name-link");
  await become(page, "Reports of");
  answer.hostReports = await rows(page);
  await page.click("#content a.name-link");
  await become(page, "Report of");
  answer.report = await text(page);
  answer.reportTitle = await page.title();
  await page.goBack();
  await become(page, "Reports of");
  // A stack's machines from the address alone: its frames are found again.
  const fresh = await open(1280, "light", withToken(url, stackAddress.slice(1), read), SHOWN);
  answer.stackAgain = await fresh.textContent("#about-view");
  await fresh.context().close();

  // A program's builds; the metric; weeks.
  await page.keyboard.press("1");
  await settled(page);
  await page.selectOption("#program", "shopd");
  await become(page, "shopd");
  answer.builds = await page.$$eval("[aria-label='Table of builds'] tbody tr", (all) => all.map((row) => row.innerText.replace(/\s+/g, " ")));
  answer.drawn = await page.$$eval("svg.build", (all) => all.map((one) => [one.querySelectorAll(".interval").length, Number(one.querySelector("circle").getAttribute("cx"))]));
  await page.keyboard.press("m");
  await page.waitForFunction(() => location.hash.includes("metric=peak"));
  await page.waitForFunction(() => document.querySelector(".sentence").textContent.includes("at the peak"));
  answer.peak = await page.textContent(".sentence");
  await page.keyboard.press("m");
  await page.keyboard.press("m");
  await page.fill("#from", "2026-01-01");
  await page.waitForFunction(() => document.getElementById("about-view").textContent.includes("Whole weeks"));
  answer.weeks = await page.textContent("#about-view");
  await page.fill("#from", "");
  await page.waitForFunction(() => !location.hash.includes("from="));
  await settled(page);

  // What changed: by the link beside a build; too few; swapped.
  await page.click("[aria-label='Table of builds'] a:has-text('what changed') >> nth=1");
  await become(page, "What changed");
  answer.diff = await rows(page);
  answer.diffAbout = await page.textContent("#about-view");
  await page.click("#swap");
  await page.waitForFunction(() => document.querySelector("#content tbody tr").innerText.includes("shrank"));
  answer.swapped = await rows(page);
  await page.selectOption("#other", { index: 1 });
  await page.waitForFunction(() => document.getElementById("content").textContent.includes("Too few"));
  answer.tooFew = await page.textContent("#content");

  // The collector goes away, and is back: nobody reloads.
  await page.keyboard.press("5");
  await become(page, "Reports");
  await tell("leave");
  await page.keyboard.press("r");
  await page.waitForFunction(() => document.getElementById("message").textContent.includes("does not answer"));
  answer.away = await page.textContent("#message");
  answer.stays = (await rows(page)).length;
  await check(page, "away");
  await shoot(page, "fleet-away");
  await tell("come");
  await page.waitForFunction(() => document.getElementById("message").hidden);
  await settled(page);
  answer.back = (await rows(page)).length;

  // Another token is asked for when somebody wants that; the old one is gone.
  await page.click("#forget");
  await page.waitForSelector(FORM);
  answer.kept = await page.evaluate(() => sessionStorage.length);
  answer.heading = await heading(page);
  return answer;
});
