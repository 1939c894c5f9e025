// catapult.js URL[#HEAP] [SCREENSHOT]: import the trace there, open the details of that heap (default: malloc) of its memory dumps.
import { withPage } from "./browser.js";

const [url, screenshot] = process.argv.slice(2);
const chosen = new URL(url).hash.slice(1) || "malloc";

await withPage(url, async (page) => {
  await page.waitForFunction(() => window.tr && tr.importer && tr.importer.Import && tr.ui && tr.ui.analysis, null, { timeout: 120000 });
  const imported = await page.evaluate(async () => {
    const model = new tr.Model();
    const bytes = await (await fetch("trace.json.gz")).arrayBuffer();
    const unzipped = new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")));
    new tr.importer.Import(model).importTraces([await unzipped.text()]);
    window.model = model;
    return {
      warnings: model.importWarnings.map((warning) => warning.message),
      dumps: model.globalMemoryDumps.map((dump) => Object.fromEntries(Object.entries(dump.processMemoryDumps).map(([pid, one]) => {
        const heap = one.heapDumps && one.heapDumps.malloc;
        return [pid, {
          bytes: heap ? heap.entries.reduce((sum, entry) => sum + entry.size, 0) : null,
          // Of each allocator: its type names, each with its bytes.
          types: Object.fromEntries(Object.entries(one.heapDumps || {}).map(([name, dump]) => [name, dump.entries.reduce((sums, entry) => {
            sums[entry.objectTypeName] = (sums[entry.objectTypeName] || 0) + entry.size;
            return sums;
          }, {})])),
          blocks: heap ? heap.entries.reduce((sum, entry) => sum + entry.count, 0) : null,
          regions: one.vmRegions ? one.vmRegions.byteStats : null,
          components: Object.fromEntries((one.memoryAllocatorDumps || []).filter((root) => root.name === "components").flatMap((root) => [root, ...root.children])
            .map((dump) => [dump.name, dump.numerics.private_size.value])),
        }];
      }))),
    };
  });
  // What a click on the memory dumps' dots shows, and then one on the first process's heap.
  await page.evaluate((heap) => {
    const view = document.createElement("tr-ui-a-container-memory-dump-sub-view");
    Polymer.dom(document.body).appendChild(view);
    view.selection = new tr.model.EventSet(model.globalMemoryDumps);
    // The last dump's last process: the one that the test knows.
    const dumps = model.globalMemoryDumps.slice(-1).map((dump) => Object.values(dump.processMemoryDumps).filter((one) => one.process.pid < 2 ** 22).pop());
    const details = document.createElement("tr-ui-a-memory-dump-heap-details-pane");
    details.style.height = "500px";
    details.style.display = "flex";
    Polymer.dom(document.body).appendChild(details);
    details.heapDumps = dumps.map((dump) => dump.heapDumps[heap]);
    details.aggregationMode = tr.ui.analysis.MemoryColumn.AggregationMode.DIFF;
    details.rebuild();
    window.overview = view;
    window.details = details;
  }, chosen);
  await page.waitForTimeout(500);
  const words = (element) => page.evaluate((name) => {
    const texts = [];
    const walk = (node) => {
      if (node.nodeType === Node.TEXT_NODE) { texts.push(node.textContent.trim()); return; }
      if (["STYLE", "SCRIPT", "TEMPLATE"].includes(node.tagName)) { return; }
      if (node.shadowRoot) { walk(node.shadowRoot); }
      for (let child = node.firstChild; child; child = child.nextSibling) { walk(child); }
    };
    walk(window[name]);
    return texts.filter(Boolean).join(" ");
  }, element);
  const byStack = await words("details");
  await page.evaluate(() => {
    const found = [];
    const walk = (node) => {
      if (node.nodeType === Node.TEXT_NODE) {
        if (node.textContent.includes("Object type")) { found.push(node.parentElement); }
        return;
      }
      if (["STYLE", "SCRIPT", "TEMPLATE"].includes(node.tagName)) { return; }
      if (node.shadowRoot) { walk(node.shadowRoot); }
      for (let child = node.firstChild; child; child = child.nextSibling) { walk(child); }
    };
    walk(window.details);
    found[0].click();
  });
  await page.waitForTimeout(500);
  return { ...imported, overview: await words("overview"), details: byStack, byType: await words("details") };
}, screenshot);
