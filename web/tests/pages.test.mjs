// Every page, in two widths and both themes.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { inspect, openPage, picture, startBrowser, startServer, themes, widths } from "./harness.mjs";

const routes = [...readFileSync(new URL("../src/routes.ts", import.meta.url), "utf8").matchAll(/\{ path: "([^"]+)"/g)].map((m) => m[1]).filter((path) => path !== "/" && path !== "/signin");
let server, browser, lake, holdout, registration;

before(async () => {
  lake = mkdtempSync(join(tmpdir(), "holdoutd-lake-"));
  [server, browser] = await Promise.all([startServer(undefined, undefined, ["--source", `lake=file://${lake}`]), startBrowser()]);
  // Of a table that is not there: one that made a holdout has no page of its own, it leads to the holdout's.
  registration = await server.call("POST", "/v1/holdouts?source=lake&table=nosuch");
  holdout = await server.upload({ name: "flights", holdout: 0.5, questions: 200, tokens: 4, mechanism: "guess_and_check" });
  for (const query of [
    { type: "fraction", of: "delay > 15" },
    { type: "mean", of: "delay", range: [-60, 180], note: "how late" },
    { type: "fraction", of: "delay > 15", where: 'origin == "ATL"' },
    { type: "groups", of: "delay", range: [-60, 180], by: "origin", values: ["ATL", "ORD", "DFW"] },
  ]) await server.call("POST", `/v1/holdouts/${holdout.id}/queries?max_questions=50`, query);
});
after(async () => {
  await browser?.close();
  await server?.stop();
  rmSync(lake, { recursive: true, force: true });
});

// idOf is what a route's page is about.
const idOf = (route) => (route.startsWith("/registrations/") ? registration : holdout).id;

for (const width of widths)
  for (const theme of themes) {
    test(`every page at ${width} in ${theme}`, async () => {
      const p = await openPage(browser, server, { width, theme });
      for (const route of routes) {
        const name = `${route.replace("/:id", "").replaceAll("/", "-").slice(1) || "first"}${route.endsWith(":id") ? "-one" : ""}-${width}-${theme}`;
        await p.open(route.replace(":id", idOf(route)));
        await inspect(p.page, name);
        await picture(p.page, name);
      }
      await p.done();
    });

    test(`signing in at ${width} in ${theme}`, async () => {
      const p = await openPage(browser, server, { width, theme, key: null });
      await p.open("/plan");
      await inspect(p.page, "signin");
      await picture(p.page, `signin-${width}-${theme}`);
      await p.done();
    });
  }

test("the first paint takes less than a second", async () => {
  const p = await openPage(browser, server, {});
  // The best of several: what is measured is the page, and not what else the machine does.
  let painted = Infinity;
  for (let i = 0; i < 6 && painted >= 1000; i++) {
    await p.open("/holdouts");
    painted = await p.page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0].startTime);
  }
  assert.ok(painted < 1000, `painted after ${painted} ms`);
  await p.done();
});
