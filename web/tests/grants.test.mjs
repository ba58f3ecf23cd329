// Grants: made, used by their holder, granted on, ended; and what the page of a holdout says to who has one.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { inspect, openPage, picture, settled, startBrowser, startServer, themes, widths } from "./harness.mjs";

let server, browser, card;
before(async () => {
  [server, browser] = await Promise.all([startServer(), startBrowser()]);
  card = await server.upload({ name: "flights", holdout: "0.5", mechanism: "thresholdout", questions: "100", tokens: "10" });
});
after(async () => {
  await browser?.close();
  await server?.stop();
});

const late = (over) => ({ type: "fraction", of: `delay > ${over}` });

test("a grant is made, used, granted on and ended", async () => {
  const ana = await server.call("POST", "/v1/keys", { name: "ana", scope: "analyst" });
  const bot = await server.call("POST", "/v1/keys", { name: "nightly-run", scope: "analyst", only_granted: true });
  const p = await openPage(browser, server, { width: 390 });
  const { page } = p;
  await p.open("/keys");
  const grants = page.getByRole("region", { name: "Grants of flights" });
  await grants.getByText("Nothing is granted").waitFor();
  await inspect(page, "grants-none");
  await grants.getByRole("button", { name: "New grant" }).click();
  await page.getByRole("button", { name: "Create the grant" }).click();
  await page.getByText("Choose whose it is").waitFor();
  await page.getByLabel("For", { exact: true }).selectOption("ana");
  await page.getByLabel("Questions", { exact: true }).fill("200");
  p.expect(/status of 403/);
  await page.getByRole("button", { name: "Create the grant" }).click();
  await page.getByRole("alert").filter({ hasText: "100" }).waitFor();
  await inspect(page, "grants-error");
  await picture(page, "grants-error-390");
  await page.getByLabel("Questions", { exact: true }).fill("20");
  await page.getByLabel("Tokens", { exact: true }).fill("4");
  await page.getByLabel("may grant parts").check();
  await page.getByRole("button", { name: "Create the grant" }).click();
  await grants.getByText("20 of 20 questions left").waitFor();
  await grants.getByText("80 questions and 6 tokens left for keys without a grant, 20 with one.").waitFor();

  // A part of it, that shows verdicts alone and ends by itself.
  await grants.getByRole("button", { name: "Grant a part of ana’s grant" }).click();
  await page.getByLabel("For", { exact: true }).selectOption("nightly-run");
  await page.getByLabel("Questions", { exact: true }).fill("5");
  await page.getByLabel("Until").fill("2099-12-31");
  await page.getByLabel("verdicts alone").check();
  await page.getByRole("button", { name: "Create the grant" }).click();
  await grants.getByText("verdicts alone · until 31 Dec 2099").waitFor();

  // They are spent by who has them, and by nobody else.
  await server.call("POST", `/v1/holdouts/${card.id}/queries`, late(15), ana.secret);
  const refused = await fetch(`${server.url}/v1/holdouts/${card.id}/queries`, { method: "POST", headers: { Authorization: `Bearer ${bot.secret}`, "Content-Type": "application/json" }, body: JSON.stringify(late(15)) });
  assert.equal((await refused.json()).code, "not-shown");
  await server.call("POST", `/v1/holdouts/${card.id}/queries`, { type: "compare", a: { type: "mean", of: "delay", range: [-60, 180] }, b: { type: "mean", of: "delay + 30.0", range: [-60, 180] }, by: 5 }, bot.secret);
  for (const width of widths)
    for (const theme of themes) {
      const all = await openPage(browser, server, { width, theme });
      await all.open("/keys");
      const tree = all.page.getByRole("region", { name: "Grants of flights" });
      await tree.getByText("14 of 20 questions left").waitFor(); // one of ana's, five of the part
      await tree.getByText("4 of 5 questions left").waitFor();
      await inspect(all.page, `grants-${width}-${theme}`);
      await picture(all.page, `grants-${width}-${theme}`);
      await all.done();

      const hers = await openPage(browser, server, { width, theme, key: ana.secret });
      await hers.open(`/holdouts/${card.id}`);
      await hers.page.getByText("of your 20 left").waitFor();
      const own = hers.page.locator("section.card", { hasText: "Your grant" });
      await own.getByText("14 of 20").waitFor();
      await own.getByText("4 questions", { exact: true }).waitFor();
      await inspect(hers.page, `grant-of-holder-${width}-${theme}`);
      await picture(hers.page, `grant-of-holder-${width}-${theme}`);
      await hers.done();
    }

  const its = await openPage(browser, server, { key: bot.secret });
  await its.open("/holdouts");
  await its.page.getByRole("link", { name: "flights" }).first().click();
  await settled(its.page);
  await its.page.locator("section.card", { hasText: "Your grant" }).getByText("verdicts alone", { exact: true }).waitFor();
  await its.page.getByText("yes", { exact: false }).first().waitFor();
  await its.page.getByRole("heading", { name: "1 answer.", exact: true }).waitFor(); // and nothing of whether it agrees with training
  await its.page.getByText("Your grant shows verdicts alone.").waitFor();
  await inspect(its.page, "grant-of-bits");
  await picture(its.page, "grant-of-bits-1280");

  // Ended: what is left is there again, and the part is over with it.
  await page.reload();
  await grants.getByRole("button", { name: "End ana’s grant" }).click();
  await inspect(page, "grants-end");
  await picture(page, "grants-end-390");
  await grants.getByRole("button", { name: "End it" }).click();
  await grants.getByText("98 questions and", { exact: false }).waitFor();
  await grants.getByText("Nothing is granted").waitFor();
  await grants.getByRole("button", { name: "Show 2 grants that are over" }).click();
  await grants.getByText("nightly-run").waitFor();
  await inspect(page, "grants-over");
  await picture(page, "grants-over-390");
  await p.done();

  its.expect(/status of 404/);
  await its.page.goto("/holdouts");
  await its.page.getByRole("heading", { level: 1 }).waitFor();
  assert.equal(await its.page.getByRole("link", { name: "flights" }).count(), 0, "a key that sees what it is granted sees nothing more");
  await its.done();
});

test("a key is made for one holdout", async () => {
  const p = await openPage(browser, server);
  const { page } = p;
  await p.open("/keys");
  await page.getByRole("button", { name: "New key" }).click();
  await page.getByLabel("Name").fill("intern");
  await page.getByLabel("these holdouts").check();
  await page.getByRole("button", { name: "Create", exact: true }).click();
  await page.getByText("Choose at least one holdout.").waitFor();
  await page.getByRole("checkbox", { name: "flights" }).check();
  await inspect(page, "key-for-one-holdout");
  await picture(page, "key-for-one-holdout-1280");
  await page.getByRole("button", { name: "Create", exact: true }).click();
  await page.locator(".secret").waitFor();
  const made = (await server.call("GET", "/v1/keys")).keys.find((k) => k.name === "intern");
  assert.deepEqual(made.holdouts, [card.id]);
  await p.done();
});
