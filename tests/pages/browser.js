// Debian's Chromium, and a page in it that may ask nobody but this machine. Used by the drivers beside it.
import { chromium } from "playwright-core";
import { existsSync } from "node:fs";

export const PATIENCE_MS = 120000; // a hang is a failure, a loaded machine is none

// The same engine without a window's rest, where it is packaged: it starts and draws for less than half of the processor time.
const CHROMIUMS = ["/usr/bin/chromium-headless-shell", "/usr/bin/chromium"];

export function launch(...args) {
  return chromium.launch({ executablePath: CHROMIUMS.find((path) => existsSync(path)), timeout: PATIENCE_MS, args: ["--no-sandbox", ...args] });
}

// Open `url`, hand the page to `look`, print what it answers as JSON. What the page complains of, and whom it asked, is in the answer.
export async function withPage(url, look, screenshot) {
  const browser = await launch("--enable-unsafe-swiftshader");
  const complaints = [];
  const asked = [];
  try {
    const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
    page.setDefaultTimeout(PATIENCE_MS);
    page.on("pageerror", (error) => complaints.push(String(error)));
    page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
    page.on("request", (request) => asked.push(request.url()));
    await page.route(/^https?:\/\/(?!127\.0\.0\.1[:/])/, (route) => route.abort());
    await page.goto(url);
    const answer = await look(page);
    if (screenshot) { await page.screenshot({ path: screenshot }); }
    process.stdout.write(JSON.stringify({ complaints, asked, ...answer }));
  } finally {
    await browser.close();
  }
}
