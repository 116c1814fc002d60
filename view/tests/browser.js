/** Debian's Chromium without a screen, which draws WebGL on the processor (SwiftShader). */

import { chromium } from "playwright-core";

const FLAGS = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"];

/** A browser. */
export function launched() {
  return chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: FLAGS });
}

/** A page at an address, and what went wrong on it. */
export async function opened(browser, address, options = {}) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 720 }, ...options });
  const wrong = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) wrong.push(message.text());
  });
  page.on("pageerror", (error) => wrong.push(error.message));
  page.on("request", (request) => {
    const url = request.url();
    const isOurs = url.startsWith(new URL(address).origin) || /^(data|blob):/.test(url);
    if (!isOurs) wrong.push(`asks for ${url}`);
  });
  await page.goto(address);
  await ready(page, "machine");
  return { page, wrong };
}

/** Waits for a tab. */
export function ready(page, tab) {
  return page.waitForFunction((name) => document.documentElement.dataset.ready === name, tab);
}
