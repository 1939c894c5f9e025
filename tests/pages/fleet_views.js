// fleet_views.js URL DIR: each view by its address in a fresh tab, in every look; names that mean harm; parts of the store that are away.
import { LOOKS, visit } from "./visit.js";
import { SHOWN, become, hash, rows, text, withToken } from "./fleet_visit.js";

await visit(async ({ open, tell, shoot, check, url }) => {
  const read = await tell("read");
  const views = JSON.parse(await tell("views"));
  const answer = { hashes: {}, texts: {}, marks: {} };
  const isRare = (name) => ["bad", "turned", "long", "none", "choose", "machines", "build", "machine", "narrow"].includes(name); // seen narrow, and dark
  for (const [width, scheme] of LOOKS) {
    for (const [name, view] of Object.entries(views)) {
      if (isRare(name) && (width === 400) === (scheme === "dark")) { continue; }
      const page = await open(width, scheme, withToken(url, view, read), SHOWN);
      const where = `${name} ${width} ${scheme}`;
      answer.hashes[where] = await hash(page);
      answer.texts[where] = await text(page);
      answer.marks[where] = await page.evaluate(() => ({
        spoilt: document.title === "spoilt", made: document.querySelectorAll("#all :is(img, script, iframe)").length,
        turned: /[\u202a-\u202e\u2066-\u2069\u0007]/.test(document.body.textContent + document.title + [...document.querySelectorAll("[title]")].map((one) => one.title).join("")),
        token: (document.documentElement.outerHTML + location.href).includes("rrrr") }));
      await check(page, where);
      await shoot(page, `fleet-${name}-${width}-${scheme}`);
      if (name === "flame" && width === 400) { // what narrows it down stands behind a button there
        answer.behind = [await page.isVisible("#from")];
        await page.click("#more");
        answer.behind.push(await page.isVisible("#from"), await page.getAttribute("#more", "aria-expanded"));
        await check(page, `${where} narrowed`);
        await shoot(page, `fleet-narrowed-${width}-${scheme}`);
      }
      if (name === "stacks") { // an open stack does not hang out either
        await page.evaluate(() => document.querySelectorAll("details.stack").forEach((one) => { one.open = true; }));
        await check(page, `${where} open`);
        await shoot(page, `fleet-open-${width}-${scheme}`);
      }
      await page.context().close();
    }
  }

  // Each narrowing goes by its button, the others stay.
  const narrow = await open(1280, "light", withToken(url, views.narrow, read), SHOWN);
  answer.wider = [];
  for (const id of ["stack", "host"]) {
    await narrow.click(`#${id}`);
    await narrow.waitForSelector(`#${id}`, { state: "hidden" });
    answer.wider.push((await hash(narrow)).slice(1));
  }
  await narrow.context().close();
  const built = await open(1280, "light", withToken(url, views.build, read), SHOWN);
  answer.current = await built.$$eval("[aria-current=true]", (all) => all.map((one) => one.textContent));
  await built.context().close();

  // A part of the store is away: the answer says so, and the page.
  const page = await open(1280, "light", withToken(url, "", read), SHOWN);
  answer.whole = await page.isVisible("#shards");
  await page.route("**/api/v1/fleet/top*", async (route) => {
    const told = await (await route.fetch()).json();
    await route.fulfill({ json: { ...told, missing_shards: ["clickhouse-2<b>"] } });
  });
  await page.keyboard.press("r");
  await page.waitForSelector("#shards:not([hidden])");
  answer.missing = await page.textContent("#shards");
  await check(page, "missing shards");
  await page.unroute("**/api/v1/fleet/top*");

  // More rows, by the link below them.
  await page.goto(`${url}#view=reports&rows=5`);
  await become(page, "Reports");
  answer.few = (await rows(page)).length;
  await page.click("#content > p a");
  await page.waitForFunction(() => document.querySelectorAll("#content tbody tr").length > 5);
  answer.more = (await rows(page)).length;
  return answer;
});
