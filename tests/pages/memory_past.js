// memory_past.js URL DIR: resident and private memory on the timeline of a program that grew before the page was opened.
import { LOOKS, visit } from "./visit.js";

await visit(async ({ open, shoot, check }) => {
  const answer = {};
  const drawn = (page) => page.evaluate(async () => {
    const chart = (await import("/timeline.js")).shown();
    const [times, live, privately, resident] = chart.data;
    // An explicit null is a gap in a line.
    const gaps = [live, privately, resident].flat().filter((value) => value === null).length;
    return { labels: chart.series.map((one) => one.label), times, private: privately.map((value) => value ?? 0), gaps };
  });
  for (const [width, scheme] of LOOKS) {
    const page = await open(width, scheme);
    await page.keyboard.press("3");
    await page.waitForFunction(() => document.getElementById("timeline-about").textContent.startsWith("What was live, private"));
    await page.waitForFunction(() => document.querySelector("#chart canvas"));
    answer.about = await page.textContent("#timeline-about");
    answer.all = await drawn(page);
    await page.hover("#chart .u-over");
    await check(page, `past ${width} ${scheme}`);
    await shoot(page, `past-${width}-${scheme}`);
    await page.keyboard.press("j");
    await page.waitForFunction(async () => location.hash.includes("pid="));
    await page.waitForFunction(() => document.getElementById("timeline-about").textContent.startsWith("What was live, private"));
    await page.waitForTimeout(500);
    answer.one = await drawn(page);
  }
  return answer;
});
