// The documentation, which the server makes itself: in the application's frame, in two widths and both themes.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { inspect, openPage, picture, startBrowser, startServer, themes, widths } from "./harness.mjs";

let server, browser;
before(async () => ([server, browser] = await Promise.all([startServer(), startBrowser()])));
after(async () => {
  await browser?.close();
  await server?.stop();
});

const look = (page) =>
  page.evaluate(() => {
    const of = (selector, ...names) => names.map((n) => getComputedStyle(document.querySelector(selector))[n]);
    return [...of("body", "fontFamily", "fontSize", "color", "backgroundColor"), ...of("h1", "fontSize", "fontWeight"), ...of("header.top", "backgroundColor", "height"), ...of(".brand", "color", "fontWeight")];
  });

for (const width of widths)
  for (const theme of themes)
    test(`the documentation at ${width} in ${theme}`, async () => {
      const p = await openPage(browser, server, { width, theme });
      p.expect(/404/); // what Chromium says of the address that is none
      await p.open("/plan");
      const application = await look(p.page);
      for (const path of ["/docs", "/docs/selecting-models", "/docs/python", "/docs/interface", "/docs/problems", "/nowhere"]) {
        const name = `${path.slice(1).replace("/", "-")}-${width}-${theme}`;
        await p.open(path);
        if (path === "/docs/interface") await p.page.locator("#plan-report").waitFor();
        assert.deepEqual(await look(p.page), application, `${path} has another look than the application`);
        await inspect(p.page, name);
        await picture(p.page, name);
      }
      await p.done();
    });

test("the theme that one part chooses is that of the other", async () => {
  const p = await openPage(browser, server, {});
  await p.open("/docs");
  await p.page.getByRole("button", { name: "Dark theme" }).click();
  const dark = await look(p.page);
  await p.page.getByRole("link", { name: "Plan" }).first().click();
  await p.page.getByRole("button", { name: "Light theme" }).waitFor();
  assert.deepEqual(await look(p.page), dark);
  await p.page.getByRole("link", { name: "Documentation" }).click();
  await p.page.getByRole("button", { name: "Light theme" }).waitFor();
  await p.done();
});
