// fleet_flame.js URL DIR: the fleet's flame graph by mouse, keys and address; of two builds; of very many frames.
import { visit } from "./visit.js";
import { SHOWN, become, hash, withToken } from "./fleet_visit.js";

const MANY = 100000;

// Many thin stacks beside few wide ones, as what very many machines send.
function manyNodes() {
  const nodes = [];
  const add = (name, parent, live) => nodes.push({ name, parent, stack: "1", live_bytes: live, peak_bytes: live, total_bytes: live });
  add("main", 0, 0);
  for (let i = 0; nodes.length < MANY; i++) {
    let parent = 1;
    for (let depth = 0; depth < 20 && nodes.length < MANY; depth++) {
      add(`function_${(i * 7 + depth) % 5000}_${i}`, parent, depth === 19 ? (i < 10 ? 5e7 : 1000 + i) : 0);
      parent = nodes.length;
    }
  }
  const all = nodes.reduce((sum, one) => sum + one.live_bytes, 0);
  return { memlog: 1, missing_shards: [], dumps: 10, live_bytes: all, peak_bytes: all, total_bytes: all, nodes };
}

await visit(async ({ open, tell, shoot, check, url }) => {
  const read = await tell("read");
  const answer = {};
  const page = await open(1280, "light", withToken(url, "view=flame&program=shopd", read), SHOWN);
  const said = async () => ({ name: await page.textContent("#frame-name"), figures: await page.textContent("#frame-figures"), where: await page.textContent("#where"), hash: decodeURIComponent(await hash(page)) });
  answer.first = await said();
  await page.focus("#graph");
  for (const key of ["ArrowDown", "ArrowDown", "ArrowDown", "ArrowDown", "ArrowDown", "Enter"]) { await page.keyboard.press(key); }
  answer.zoomed = await said();
  const address = page.url();
  await page.keyboard.press("Backspace");
  answer.out = await said();
  await page.keyboard.press("Escape");
  answer.whole = await said();
  const box = await page.$eval("#graph", (canvas) => { const at = canvas.getBoundingClientRect(); return { x: at.left, y: at.top }; });
  await page.mouse.click(box.x + 10, box.y + 3 * 18 + 5); // the third below the root
  answer.clicked = await said();
  await page.click("#reset");
  answer.reset = await said();
  await page.keyboard.press("/");
  await page.keyboard.type("Cache|json");
  await page.waitForFunction(() => document.getElementById("found").textContent !== "");
  answer.found = await page.textContent("#found");
  await page.waitForFunction(() => location.hash.includes("search="));
  await page.keyboard.press("Escape");
  await page.keyboard.press("i");
  await page.waitForFunction(() => location.hash.includes("invert=1"));
  await page.waitForSelector("[aria-busy]", { state: "detached" });
  answer.inverted = await said();
  await check(page, "inverted");
  await shoot(page, "fleet-inverted");

  // What was zoomed is so in a fresh tab.
  const fresh = await open(1280, "dark", withToken(url, new URL(address).hash.slice(1), read), SHOWN);
  answer.again = { name: await fresh.textContent("#frame-name"), where: await fresh.textContent("#where"), hash: decodeURIComponent(await hash(fresh)) };
  await fresh.context().close();

  // Two builds in one graph.
  const two = await open(1280, "light", withToken(url, await tell("two builds"), read), SHOWN);
  answer.two = { figures: await two.textContent("#frame-figures"), legend: await two.textContent("#legend"), about: await two.textContent("#about-view") };
  await check(two, "two builds");
  await shoot(two, "fleet-two-builds");
  await two.context().close();

  // Very many frames: what is thinner than half a pixel is not drawn, and all of it is summed.
  const many = manyNodes();
  const wide = await open(1280, "light", withToken(url, "view=reports", read), SHOWN);
  await wide.route("**/api/v1/fleet/flame*", (route) => route.fulfill({ json: many }));
  const began = Date.now();
  await wide.keyboard.press("2");
  await become(wide, "All programs");
  answer.manyAbout = await wide.textContent("#about-view");
  answer.manyFigures = await wide.textContent("#frame-figures");
  await wide.focus("#graph");
  await wide.keyboard.press("ArrowDown");
  await wide.keyboard.press("ArrowDown");
  await wide.keyboard.press("Enter");
  answer.manyZoomed = await wide.textContent("#where");
  await wide.keyboard.press("Escape");
  await wide.fill("#search", "function_7_1$");
  await wide.waitForFunction(() => document.getElementById("found").textContent !== "");
  answer.manyFound = await wide.textContent("#found");
  answer.manyTook = Date.now() - began;
  await shoot(wide, "fleet-many");
  answer.expected = many.live_bytes / many.dumps;
  return answer;
});
