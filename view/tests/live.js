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
  }));
/** Waits until a later interval is shown and is the newest: the slider grows before its interval has come. */
const later = async (than) => {
  const shown = await page.waitForFunction((of) => {
    const interval = Number(document.documentElement.dataset.interval);
    return interval > of && interval === Number(document.querySelector("#time").max) && interval;
  }, than);
  return shown.jsonValue();
};

const first = await later(0);
assert.match((await told()).result, /goes on$/);
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
  await page.screenshot({ path: `${shots}/live-${key}.png` });
}
const second = await later(first);
// Who goes back stays there.
await page.locator("#time").fill("1");
await page.waitForFunction((of) => Number(document.querySelector("#time").max) > of, second);
assert.equal((await told()).interval, 1, "the slider does not stay where it is put");
assert.deepEqual(wrong, [], "the page complains");
await browser.close();
console.log("a run that goes on: ok");
