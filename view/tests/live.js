/** Looks at the page of a run that goes on: the newest interval is shown as it comes, and the server ends with
 * the run, since nobody is at a terminal.
 *
 * live.js SHOTS ADDRESS
 */

import assert from "node:assert/strict";
import { launched, opened } from "./browser.js";

const [shots, address] = process.argv.slice(2);
const browser = await launched();
const { page, wrong } = await opened(browser, address);
const told = () =>
  page.evaluate(() => ({
    result: document.querySelector("header .result").textContent,
    interval: Number(document.documentElement.dataset.interval),
    last: Number(document.querySelector("#time").max),
  }));
/** Waits until the slider has gone on. */
const later = async (than) => {
  await page.waitForFunction((of) => Number(document.documentElement.dataset.interval) > of, than);
  return told();
};

const first = await later(0);
assert.match(first.result, /goes on$/);
assert.equal(first.interval, first.last, "the newest interval is not shown");
await page.screenshot({ path: `${shots}/live.png` });
// No tab is empty while the run goes on.
for (const [key, said] of [
  ["3", /table messages|Messages by sender/],
  ["5", /virtual time/],
  ["1", /utilization/],
]) {
  await page.keyboard.press(key);
  await page.waitForFunction(
    (of) => new RegExp(of).test(document.querySelector("main > section:not([hidden])").textContent),
    said.source,
  );
}
const second = await later(first.interval);
assert.equal(second.interval, second.last, "the newest interval is not shown");
// Who goes back stays there.
await page.locator("#time").fill("1");
await page.waitForFunction((of) => Number(document.querySelector("#time").max) > of, second.last);
assert.equal((await told()).interval, 1, "the slider does not stay where it is put");
assert.deepEqual(wrong, [], "the page complains");
await browser.close();
console.log("a run that goes on: ok");
