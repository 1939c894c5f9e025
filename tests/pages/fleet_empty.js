// fleet_empty.js URL DIR: nothing has come yet; the page says what to do, and shows what comes when it is done.
import { LOOKS, visit } from "./visit.js";
import { SHOWN, become, withToken } from "./fleet_visit.js";

await visit(async ({ open, tell, shoot, check, url }) => {
  const answer = {};
  const read = await tell("read");
  for (const [width, scheme] of LOOKS) {
    const page = await open(width, scheme, withToken(url, "", read), SHOWN);
    await check(page, `empty ${width} ${scheme}`);
    await shoot(page, `fleet-empty-${width}-${scheme}`);
    await page.context().close();
  }
  const page = await open(1280, "light", withToken(url, "", read), SHOWN);
  answer.heading = await page.textContent("#heading");
  answer.commands = await page.$$eval(".empty-store pre", (all) => all.map((one) => one.textContent));
  answer.tabs = await page.isVisible("#tabs");
  await tell(JSON.stringify(answer.commands));
  await become(page, "The fleet");
  answer.programs = await page.$$eval("[aria-label='Table of programs'] tbody tr", (all) => all.map((row) => row.innerText.replace(/\s+/g, " ")));
  await shoot(page, "fleet-filled");
  return answer;
});
