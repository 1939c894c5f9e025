// picture.js URL FILE CLIENTS: the live page over PostgreSQL with so many clients, as a picture; called by tools/dev/pictures.
import { chromium } from "playwright-core";

const [url, file, clients] = process.argv.slice(2);
const PATIENCE_MS = 100000;
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", timeout: PATIENCE_MS, args: ["--no-sandbox"] });
try {
  const context = await browser.newContext({ viewport: { width: 1120, height: 1000 }, colorScheme: "light" });
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  await page.goto(url);
  // The clients' backends are there, and the flame graph has seen them.
  await page.waitForFunction((count) => document.querySelectorAll("#rows tr").length >= count + 5, Number(clients));
  await page.waitForTimeout(6000);
  await page.waitForFunction(() => document.getElementById("frame-name").textContent !== "" && !document.getElementById("flame-view").classList.contains("waiting"));
  await page.screenshot({ path: file });
} finally {
  await browser.close();
}
