/** Looks at the page: it draws, the slider moves values, clicks give the figures of the tables.
 *
 * page.js SHOTS ADDRESS ADDRESS-OF-TWO ADDRESS-OF-A-HOSTILE-NAME
 */

import assert from "node:assert/strict";
import { launched, opened, ready } from "./browser.js";

const [shots, one, two, hostile] = process.argv.slice(2);
const browser = await launched();
const shoot = (page, name) => page.screenshot({ path: `${shots}/${name}.png` });
const ask = async (address, path) => (await fetch(`${address}api/${path}`)).json();

/** Colours on the machine's canvas, of the points in a coarse grid. */
async function colours(page) {
  const picture = (await page.locator(".pane").first().screenshot()).toString("base64");
  return page.evaluate(async (data) => {
    const image = new Image();
    image.src = `data:image/png;base64,${data}`;
    await image.decode();
    const canvas = new OffscreenCanvas(image.width, image.height);
    const context = canvas.getContext("2d");
    context.drawImage(image, 0, 0);
    const { data: pixels } = context.getImageData(0, 0, image.width, image.height);
    const found = new Set();
    for (let at = 0; at < pixels.length; at += 4 * 7) {
      found.add((pixels[at] << 16) | (pixels[at + 1] << 8) | pixels[at + 2]);
    }
    return found.size;
  }, picture);
}

async function chosen(page, thing, modifiers) {
  const at = await page.evaluate((of) => window.weftView.at(of), thing);
  if (modifiers) await page.keyboard.down(modifiers);
  await page.mouse.click(at.x, at.y);
  if (modifiers) await page.keyboard.up(modifiers);
}

/** The figures beside the machine, by column and direction. */
function figures(page) {
  return page.$$eval("#details td[data-column]", (cells) =>
    cells.map((cell) => ({ ...cell.dataset, port: cell.parentElement.dataset.port })),
  );
}

/** Where frames take long, a view that moves has fewer pixels, and one that rests has all. */
async function coarse() {
  const { page, wrong } = await opened(browser, one);
  const widths = await page.evaluate(async () => {
    const canvas = document.querySelector(".pane canvas");
    const rests = () => new Promise((after) => setTimeout(after, 1_000));
    await rests();
    const found = [canvas.width];
    for (let frame = 0; frame < 4; frame += 1) {
      window.weftView.pan(1, 0);
      const begin = performance.now();
      while (performance.now() - begin < 60);
      await new Promise(requestAnimationFrame);
    }
    found.push(canvas.width);
    await rests();
    return [...found, canvas.width];
  });
  assert.ok(widths[1] < 0.6 * widths[0], `as sharp while it moves: ${widths}`);
  assert.equal(widths[2], widths[0]);
  assert.deepEqual(wrong, []);
  await page.close();
}

/** It draws, the slider moves values, clicks give the figures of the tables. */
async function machine() {
  const { page, wrong } = await opened(browser, one, { colorScheme: "dark" });
  assert.ok((await colours(page)) > 20, "the machine is not drawn");
  await shoot(page, "machine-dark");
  const value = (number) =>
    page.evaluate((of) => window.weftView.value({ kind: "link", number: of }), number);
  const whole = await value(3);
  const slider = page.locator("#time");
  const seen = [];
  for (const interval of [0, 7, 12]) {
    await slider.fill(String(interval));
    await page.waitForFunction((at) => document.documentElement.dataset.interval === at, String(interval));
    const response = await fetch(`${one}api/frame?run=0&quantity=utilization&interval=${interval}`);
    const frame = new Float32Array(await response.arrayBuffer());
    seen.push(await value(3));
    assert.equal(seen.at(-1), frame[3]);
  }
  assert.ok(new Set([whole, ...seen]).size > 2, `the slider moves nothing: ${seen}`);
  await page.keyboard.press("Escape");
  // A key of the page, not of the slider.
  await page.locator("#whole").click();
  for (const number of [3, 18]) {
    const { row } = await ask(one, `link?run=0&number=${number}`);
    await chosen(page, { kind: "link", number });
    await page.waitForFunction(() => document.querySelector("#details td[data-column=packets]"));
    const cells = await figures(page);
    // The click may take either direction of the link.
    const side = cells.filter((cell) => cell.column === "packets" && Number(cell.value) === row.packets);
    assert.ok(side.length > 0, `no figure is ${row.packets}: ${JSON.stringify(cells)}`);
    for (const column of ["packet_bytes", "busy_ps", "utilization", "rate_bits_per_second"]) {
      const cell = cells.find((of) => of.column === column && of.side === side[0].side);
      assert.equal(Number(cell.value), row[column], column);
    }
    await page.keyboard.press("Escape");
    await page.waitForFunction(() => !document.querySelector("#details td[data-column]"));
  }
  await chosen(page, { kind: "switch", number: 2 });
  await page.waitForSelector("#details tr[data-port='5']");
  const { leaving } = await ask(one, "switch?run=0&number=2");
  const told = (await figures(page)).find((cell) => cell.port === "5");
  assert.equal(Number(told.value), leaving[5].utilization);
  await page.waitForSelector("#details .uplot");
  await shoot(page, "switch");
  await chosen(page, { kind: "endpoint", number: 2 });
  await page.waitForFunction(() => document.querySelector("#details").dataset.thing === "endpoint 2");
  await chosen(page, { kind: "endpoint", number: 15 }, "Shift");
  await page.waitForSelector("#details .way");
  const path = await ask(one, "path?from=2&to=15");
  assert.equal(await page.locator("#details .way li").count(), path.links.length);
  await shoot(page, "path");
  // By keyboard alone: find, another run, the theme.
  await page.keyboard.press("/");
  await page.keyboard.type("s 1 p 2\n");
  await page.waitForFunction(() =>
    document.querySelector("#details h2").textContent.includes("switch 1 port 2"),
  );
  const before = await value(3);
  await page.keyboard.press("]");
  await page.waitForFunction((old) => window.weftView.value({ kind: "link", number: 3 }) !== old, before);
  await page.keyboard.press("t");
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "light");
  assert.deepEqual(wrong, []);
  await page.close();
}

/** Pictures that these results have nothing for, and what the page says instead. */
const ABSENT = {
  "congestion-trees": "no congestion tree",
  "flow-rates": "no table flow_rates",
  "job-rates": "no table job_rates",
  throughput: "no table flow_rates",
  "link-energy": "nothing of the power",
};

/** Every tab and every picture draws. */
async function tabs() {
  const { page, wrong } = await opened(browser, two);
  assert.equal(await page.locator(".pane").count(), 2);
  await shoot(page, "two");
  await page.keyboard.press("2");
  await ready(page, "plots");
  for (const { name } of (await ask(two, "results"))[0].kinds) {
    await page.click(`[data-kind=${name}]`);
    if (name in ABSENT) {
      await page.waitForSelector(`.place .empty:has-text("${ABSENT[name]}")`);
      continue;
    }
    await page.waitForSelector(`.picture[data-kind=${name}] canvas`);
    await shoot(page, `plot-${name}`);
  }
  await page.keyboard.press("3");
  await ready(page, "ranks");
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.locator("text=export for Perfetto").first().click(),
  ]);
  assert.match(download.suggestedFilename(), /\.json$/);
  await shoot(page, "ranks");
  await page.keyboard.press("4");
  await ready(page, "messages");
  const list = await ask(two, "messages?run=0&limit=200");
  const first = await page.locator("tr[data-time]").first().getAttribute("data-time");
  assert.equal(Number(first), list.slowest[0].delivered_ps - list.slowest[0].posted_ps);
  await shoot(page, "messages");
  // The histogram has every message; a chosen heading sorts, the largest first.
  const bars = await page
    .locator(".histogram")
    .first()
    .locator("[data-count]")
    .evaluateAll((all) => all.map((bar) => Number(bar.dataset.count)));
  assert.equal(
    bars.reduce((so, messages) => so + messages, 0),
    list.count,
  );
  await page.locator("th .sort", { hasText: "posted at" }).first().click();
  const posted = await page
    .locator(".choosable")
    .first()
    .locator("td:nth-child(6)")
    .evaluateAll((all) => all.map((cell) => Number(cell.dataset.sort)));
  assert.deepEqual(
    posted,
    posted.toSorted((a, b) => b - a),
  );
  await page.keyboard.press("5");
  await ready(page, "overview");
  await shoot(page, "overview");
  assert.ok((await page.locator("#hot-links th").allTextContents()).includes("run"));
  // Nothing is wider than the window.
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
  assert.deepEqual(wrong, []);
  await page.close();
}

/** A link restores what was shown; shares go to 100 % unless their own maximum is asked for. */
async function links() {
  const { page, wrong } = await opened(browser, one);
  const scale = () => page.locator(".scale").textContent();
  assert.match(await scale(), /100 %$/);
  await page.locator("#range").selectOption("own");
  await page.waitForFunction(() => !/100 %$/.test(document.querySelector(".scale").textContent));
  await page.locator("#time").fill("7");
  await page.waitForFunction(() => document.documentElement.dataset.interval === "7");
  await chosen(page, { kind: "switch", number: 2 });
  await page.waitForFunction(() => location.hash.includes("chosen=s+2"));
  assert.ok((await page.locator("#marks .warm-up").count()) > 0, "the warm-up is not marked");
  const address = page.url();
  const again = await opened(browser, address);
  assert.equal(await again.page.locator("#range").inputValue(), "own");
  await again.page.waitForFunction(() => document.documentElement.dataset.interval === "7");
  await again.page.waitForFunction(() => document.querySelector("#details").dataset.thing === "switch 2");
  assert.deepEqual([...wrong, ...again.wrong], []);
  await again.page.close();
  await page.close();
}

/** A name of a result is text. */
async function names() {
  const { page, wrong } = await opened(browser, hostile);
  for (const key of ["2", "3", "4", "5"]) {
    await page.keyboard.press(key);
    await page.waitForTimeout(400);
  }
  assert.equal(await page.locator("img").count(), 0);
  assert.ok((await page.title()).includes("<img src=x"));
  assert.ok((await page.locator("header").textContent()).includes("<img src=x onerror"));
  assert.deepEqual(wrong, []);
  await page.close();
}

try {
  for (const check of [machine, coarse, tabs, links, names]) {
    await check();
    console.log(`${check.name}: ok`);
  }
} finally {
  await browser.close();
}
