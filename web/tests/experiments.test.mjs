// The experiment, stepped and played to its end.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { inspect, openPage, picture, startBrowser, startServer } from "./harness.mjs";

let server, browser;
before(async () => ([server, browser] = await Promise.all([startServer(), startBrowser()])));
after(async () => {
  await browser?.close();
  await server?.stop();
});

for (const [width, theme] of [[1280, "light"], [1280, "dark"], [390, "light"]])
  test(`the experiment is played at ${width} in ${theme}`, async () => {
    const p = await openPage(browser, server, { width, theme });
    const { page } = p;
    await p.open("/experiments");
    const naive = page.getByRole("img", { name: /believes/ }).first();
    await page.getByRole("button", { name: "Step" }).click();
    assert.match(await naive.getAttribute("aria-label"), /^After 1 round /);
    await page.getByLabel("Speed").fill("100");
    await page.getByRole("button", { name: "Play" }).click();
    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByRole("button", { name: "Play" }).click();
    await page.getByRole("img", { name: /^After 200 rounds/ }).first().waitFor();
    const [left, right] = await page.getByRole("img", { name: /^After 200 rounds/ }).evaluateAll((all) => all.map((e) => e.getAttribute("aria-label")));
    assert.match(left, /Too high by 0\.[01]/, "naive reuse goes wrong");
    assert.match(right, /They agree/, "the holdout holds");
    await page.keyboard.press("t");
    await page.getByRole("cell", { name: "200", exact: true }).waitFor();
    await inspect(page, "experiments-played");
    await picture(page, `experiments-played-${width}-${theme}`);
    await page.getByLabel("A few columns know a little").check();
    await page.getByText("Press Play.").first().waitFor();
    await page.getByRole("button", { name: "Other data" }).click();
    await page.getByRole("button", { name: "Step" }).click();
    await p.done();
  });

test("an experiment that does not come", async () => {
  const p = await openPage(browser, server);
  p.expect(/status of 503/);
  await p.page.route("**/v1/simulations/**", (route) => route.fulfill({ status: 503, contentType: "application/problem+json", body: '{"code":"unavailable","title":"The server cannot answer now","status":503,"detail":"later"}' }));
  await p.page.goto("/experiments");
  await p.page.getByRole("alert").waitFor();
  await p.page.unroute("**/v1/simulations/**");
  await p.page.getByRole("button", { name: "Try again" }).click();
  await p.page.getByText("Press Play.").first().waitFor();
  await p.done();
});
