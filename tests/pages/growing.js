// growing.js URL DIR: ask which functions of tests/e2e/growing_test.py's program grow, at its start and again when the test has let it grow.
import { LOOKS, visit } from "./visit.js";

await visit(async ({ open, shoot, check, tell, url }) => {
  const answer = {};
  const told = (page) => page.waitForFunction(() => /\d\d:\d\d:\d\d/.test(document.getElementById("growing-about").textContent)
    && !document.getElementById("growing-view").classList.contains("waiting"));
  const items = (page, id) => page.$$eval(`#${id} > li`, (all) => all.map((one) => one.innerText.replace(/\s+/g, " ")));
  const look = async (page) => ({
    about: await page.textContent("#growing-about"), basis: await page.textContent("#growing-basis"),
    list: await items(page, "growing-list"), rest: await items(page, "growing-rest"),
  });
  const page = await open(1280, "light");
  await page.keyboard.press("6");
  await told(page);
  answer.early = await look(page);
  await check(page, "growing early");
  await shoot(page, "growing-early");
  await tell("grow");
  const before = answer.early.about;
  await page.keyboard.press("r");
  await page.waitForFunction((old) => document.getElementById("growing-about").textContent !== old, before);
  await told(page);
  answer.late = await look(page);
  for (const [width, scheme] of LOOKS.filter((one) => one[1] === "dark")) {
    const other = await open(width, scheme, url);
    await other.click("#tabs button:text-is('Growing')");
    await told(other);
    await check(other, `growing ${width} ${scheme}`);
    await shoot(other, `growing-${width}-${scheme}`);
    await other.context().close();
  }
  await page.click("#growing-list button");
  await page.waitForFunction(() => document.getElementById("where").textContent.startsWith("Callers and callees"));
  await page.waitForFunction(() => !document.getElementById("flame-view").classList.contains("waiting"));
  answer.around = await page.textContent("#where");
  answer.address = page.url();
  answer.isDrawn = await page.evaluate(() => document.getElementById("frame-figures").textContent);
  await page.goBack();
  await page.waitForSelector("#growing-list li");
  answer.again = (await items(page, "growing-list"))[0].split(" ")[0];
  return answer;
});
