// A page in Debian's Chromium that may ask nobody but this machine. Used by the drivers beside it.
import { chromium } from "playwright-core";

const PATIENCE_MS = 120000; // a hang is a failure, a loaded machine is none

// Open `url`, hand the page to `look`, print what it answers as JSON. What the page complains of, and whom it asked, is in the answer.
export async function withPage(url, look, screenshot) {
  const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", timeout: PATIENCE_MS, args: ["--no-sandbox", "--enable-unsafe-swiftshader"] });
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
