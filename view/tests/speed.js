/** Measures the page with software WebGL: opening, and frames while it moves and zooms.
 *
 * speed.js ADDRESS, as `weft view` printed it; both in milliseconds.
 */

import { launched, opened } from "./browser.js";

const FRAMES = 240;
const [address] = process.argv.slice(2);
const browser = await launched();
const begin = performance.now();
const { page, wrong } = await opened(browser, address);
const open = performance.now() - begin;
const times = await page.evaluate(async (frames) => {
  const next = () => new Promise(requestAnimationFrame);
  const found = [];
  let before = await next();
  for (let frame = 0; frame < frames; frame += 1) {
    // In through all ways of drawing, and out again.
    window.weftView.zoom(frame < frames / 2 ? 1.04 : 1 / 1.04);
    window.weftView.pan(frame % 2 ? 5 : -4, 1);
    const now = await next();
    found.push(now - before);
    before = now;
  }
  return found.sort((a, b) => a - b);
}, FRAMES);
const at = (share) => Number(times[Math.min(Math.floor(share * times.length), times.length - 1)].toFixed(1));
console.log(
  JSON.stringify({ open: Math.round(open), median: at(0.5), "95 %": at(0.95), most: at(1), wrong }),
);
await browser.close();
