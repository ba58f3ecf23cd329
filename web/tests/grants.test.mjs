// A key with a grant: its holdouts, its slice of their budget, and answers without what the grant does not show.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { customers, inspect, openPage, picture, startBrowser, startServer } from "./harness.mjs";

let server, browser;
before(async () => ([server, browser] = await Promise.all([startServer(), startBrowser()])));
after(async () => {
  await browser?.close();
  await server?.stop();
});

/** A new key with a grant of a holdout. */
async function grantee(name, holdout, members) {
  const key = await server.call("POST", "/v1/keys", { name, scope: "granted" });
  await server.call("POST", "/v1/grants", { key: key.id, holdout, ...members });
  return key;
}

test("a key with a grant signs in, sees its slice, and no interval where none is shown", async () => {
  const { id } = await server.upload({ name: "flights", holdout: 0.5, questions: 400, mechanism: "gaussian" });
  await server.upload({ name: "customers", unit: "customer_id", holdout: 0.5, questions: 100, mechanism: "gaussian" }, customers); // which the key does not see
  const valued = await grantee("valued", id, { questions: 3, shows: "value" });
  const p = await openPage(browser, server, { key: null });
  const { page } = p;
  await p.open("/holdouts");
  await page.getByLabel("Key", { exact: true }).fill(valued.secret);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("One table.").waitFor();
  await page.getByRole("link", { name: "flights" }).click();
  await page.getByText("Questions of your grant").waitFor();
  await page.getByText("of 3 left").waitFor();
  await p.open(`/holdouts/${id}/ask`);
  await page.getByLabel("Share of rows in which").fill("delay > 15");
  await page.getByRole("button", { name: "Ask for 1 question" }).click();
  await page.getByText("The grant of this key shows no intervals.").waitFor();
  await page.getByText("2 questions left.").waitFor();
  await inspect(page, "grants-answer");
  await picture(page, "grants-answer");
  await p.open(`/holdouts/${id}`);
  await page.getByText("A slice of the 400 of the holdout; 1 question used by you.").waitFor();
  await page.getByRole("heading", { name: "1 answer." }).waitFor();
  const row = page.locator("li.frow").first();
  await row.waitFor();
  assert.equal(await row.locator(".iv").count(), 0, "no interval is drawn");
  assert.equal(await row.locator(".dot").count(), 1, "the value is");
  await inspect(page, "grants-history");
  await picture(page, "grants-history");
  await p.open("/more");
  await page.getByText("Signed in as valued, with grants.").waitFor();
  await p.done();

  const passes = { type: "passes", of: { type: "fraction", of: "delay > 15" }, below: 0.9 };
  const bits = await grantee("bits", id, { questions: 5, shows: "bit" });
  await server.call("POST", `/v1/holdouts/${id}/queries`, passes, bits.secret);
  const b = await openPage(browser, server, { key: bits.secret });
  await b.open(`/holdouts/${id}`);
  await b.page.locator("li.frow .v", { hasText: /^passed/ }).waitFor();
  await b.page.getByText("shows whether it passed, and no more.").first().waitFor();
  await inspect(b.page, "grants-bit");
  await picture(b.page, "grants-bit");
  await b.done();
});
