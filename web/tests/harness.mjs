// What the tests in Chromium share: a server with a data directory of its own, a browser, and pages that note what must not happen on them.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach } from "node:test";
import { chromium } from "playwright-core";

const binary = process.env.HOLDOUTD_BINARY ?? "../holdoutd";
const pictures = process.env.HOLDOUTD_PICTURES ?? join(tmpdir(), "holdoutd-pictures");
const axe = readFileSync(new URL("../node_modules/axe-core/axe.min.js", import.meta.url), "utf8");
export const flights = readFileSync(new URL("../../internal/api/testdata/flights-5k.parquet", import.meta.url));
export const customers = readFileSync(new URL("../../internal/api/testdata/customers.parquet", import.meta.url));
export const customersFile = new URL("../../internal/api/testdata/customers.parquet", import.meta.url).pathname;
/** Customers with several rows each, which are alike, in a column that is called k. */
export const repeatedFile = new URL("../../internal/api/testdata/repeated.parquet", import.meta.url).pathname;
export const flightsFile = new URL("../../internal/api/testdata/flights-5k.parquet", import.meta.url).pathname;

/** How long a test waits for anything on a page before it fails instead of hanging. The tests share the machine with others, and a slow machine is no fault of a page. */
const patience = 120_000;

/** Starts a server; stop() ends it, and starting it again in the same place keeps data and address. */
export async function startServer(dir = mkdtempSync(join(tmpdir(), "holdoutd-browser-")), addr = "127.0.0.1:0", ...flags) {
  const child = spawn(binary, ["serve", "--any-filesystem", "--data", dir, "--addr", addr, "--log", "json", ...flags], { stdio: ["ignore", "ignore", "pipe"] });
  const log = [];
  const exited = new Promise((done) => child.on("exit", done));
  const listening = await new Promise((done, fail) => {
    createInterface({ input: child.stderr }).on("line", (line) => {
      log.push(line);
      if (line.includes('"msg":"listening"')) done(JSON.parse(line).addr);
    });
    child.on("error", fail);
    child.on("exit", () => fail(new Error(`the server ended:\n${log.join("\n")}`)));
  });
  const url = `http://${listening}`;
  const key = readFileSync(join(dir, "admin.key"), "utf8").trim();
  const call = async (method, path, body, as = key) => {
    const headers = { Authorization: `Bearer ${as}` };
    const binaryBody = body instanceof Uint8Array;
    if (body && !binaryBody) headers["Content-Type"] = "application/json";
    const reply = await fetch(url + path, { method, headers, body: body && !binaryBody ? JSON.stringify(body) : body });
    const text = await reply.text();
    assert.ok(reply.ok, `${method} ${path}: ${reply.status} ${text}`);
    return text ? JSON.parse(text) : undefined;
  };
  return {
    url, key, dir, addr: listening, log, call,
    upload: (parameters, table = flights) => call("POST", `/v1/holdouts?${new URLSearchParams(parameters)}`, table),
    async halt() {
      child.kill("SIGTERM");
      await exited;
    },
    async stop() {
      child.kill("SIGTERM");
      await exited;
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

export function startBrowser() {
  return chromium.launch({
    executablePath: process.env.HOLDOUTD_CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"],
  });
}

export const widths = [1280, 390];
export const themes = ["light", "dark"];

/** Pages that are open, with the log of their server. A test that fails says what they show: a wait that ended says only what was not there. */
const open = new Map();
afterEach(async (t) => {
  for (const [page, { faults, log }] of open) {
    if (t.passed === false) console.log(`${page.url()} shows:\n${await page.locator("body").innerText().catch((e) => e.message)}\nfaults: ${faults.join("\n")}\nthe server's log ends:\n${log.slice(-10).join("\n")}`);
    open.delete(page);
  }
});

/** A page that notes errors on its console, breaches of its policy and requests to elsewhere; done() fails where there was one. */
export async function openPage(browser, server, { width = 1280, theme = "light", key = server.key, permissions = [] } = {}) {
  const context = await browser.newContext({ viewport: { width, height: width < 600 ? 844 : 860 }, colorScheme: theme, baseURL: server.url, reducedMotion: "reduce", permissions, hasTouch: width < 600 });
  context.setDefaultTimeout(patience);
  const faults = [];
  const expected = [];
  const page = await context.newPage();
  page.on("console", (m) => {
    if (m.type() !== "error" && m.type() !== "warning") return;
    if (expected.some((e) => e.test(m.text()))) return;
    faults.push(`${m.type()} on the console: ${m.text()} (${m.location().url})`);
  });
  page.on("pageerror", (e) => faults.push(`an error that nothing caught: ${e.stack ?? e}`));
  page.on("request", (r) => {
    if (!r.url().startsWith(`${server.url}/`) && !r.url().startsWith("blob:")) faults.push(`a request to elsewhere: ${r.url()}`);
    if (key && r.url().includes(key)) faults.push(`the key is in an address: ${r.url()}`);
  });
  await page.addInitScript(() => {
    document.addEventListener("securitypolicyviolation", (e) => console.error(`the policy was broken: ${e.violatedDirective} ${e.blockedURI} ${e.sample}`));
  });
  if (key) {
    // As the page does it, but without its form: a browser's own request, whose cookie stays in this context.
    const reply = await context.request.post(`${server.url}/v1/session`, { headers: { Authorization: `Bearer ${key}` } });
    assert.equal(reply.status(), 200);
  }
  open.set(page, { faults, log: server.log });
  return {
    page, context,
    /** Errors of a status that a test provokes: Chromium writes each to the console. */
    expect: (pattern) => expected.push(pattern),
    async open(path) {
      await page.goto(path);
      await settled(page);
    },
    async done() {
      await context.close();
      assert.deepEqual(faults, []);
    },
  };
}

/** Waits until the page shows its heading and nothing is loading. */
export async function settled(page) {
  await page.locator("h1").first().waitFor();
  await page.waitForFunction(() => !document.querySelector("[aria-busy=true]"));
  await page.evaluate(() => document.fonts.ready);
}

/** Holds the page against axe-core, and its width against the window's. */
export async function inspect(page, name) {
  const found = await page.evaluate(`${axe}; axe.run(document, { resultTypes: ["violations"] })`);
  const violations = found.violations.map((v) => `${v.id} (${v.impact}): ${v.help}: ${v.nodes.map((n) => `${n.target} ${n.failureSummary}`).join(" | ")}`);
  assert.deepEqual(violations, [], `${name}: axe-core`);
  const wide = await page.evaluate(() => [document.documentElement.scrollWidth, window.innerWidth]);
  assert.ok(wide[0] <= wide[1], `${name}: the page is ${wide[0]} px wide in a window of ${wide[1]}`);
  // On a phone a bar lies over the page: at its end, nothing is under it.
  const covered = await page.evaluate(() => {
    const top = Math.min(...[...document.querySelectorAll(".bottomnav, .askbar")].filter((e) => getComputedStyle(e).position === "fixed").map((e) => e.getBoundingClientRect().top));
    scrollTo(0, document.documentElement.scrollHeight);
    const last = [...document.querySelectorAll("main > *")].filter((e) => getComputedStyle(e).position === "static" || getComputedStyle(e).position === "relative").map((e) => e.getBoundingClientRect().bottom);
    scrollTo(0, 0);
    return Math.max(...last) - top;
  });
  assert.ok(!(covered > 0), `${name}: the bar covers ${covered} px of the page's end`);
}

export async function picture(page, name) {
  mkdirSync(pictures, { recursive: true });
  await page.screenshot({ path: join(pictures, `${name}.png`), fullPage: true });
}
