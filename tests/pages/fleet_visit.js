// A person at the collector's page: what the drivers fleet*.js share.
export const FORM = "#token:not([hidden])";
// A view that is there and asks for nothing any more.
export const SHOWN = "#all:not([hidden]):not([aria-busy])";

export const settled = (page) => page.waitForSelector(SHOWN);
export const heading = (page) => page.textContent("#heading");
export const hash = (page) => page.evaluate(() => location.hash);
export const text = (page) => page.$eval("#all", (all) => all.innerText.replace(/\s+/g, " "));
export const rows = (page) => page.$$eval("#content tbody tr", (all) => all.map((row) => row.innerText.replace(/\s+/g, " ")));

// The address of a view with the token in it, as somebody would give it to a script.
export const withToken = (base, view, token) => `${base}#${view ? `${view}&` : ""}token=${token}`;

// Enter the token where the page asks for it.
export async function enter(page, token) {
  await page.fill("#token-text", token);
  await page.keyboard.press("Enter");
}

// Wait until another view stands there.
export const become = (page, words) => page.waitForFunction((wanted) => document.getElementById("heading").textContent.includes(wanted) && !document.getElementById("all").hasAttribute("aria-busy"), words);
