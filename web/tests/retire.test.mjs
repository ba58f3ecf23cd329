// The end of a holdout: retired by an admin, after a second thought; then its rows are there for everybody, and nothing new is asked.
import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, test } from "node:test";
import { inspect, openPage, picture, startBrowser, startServer } from "./harness.mjs";

let server, browser;
before(async () => (browser = await startBrowser()));
after(() => browser?.close());
beforeEach(async () => (server = await startServer()));
afterEach(() => server?.stop());

for (const [width, theme] of [[1280, "light"], [390, "dark"]])
  test(`a holdout is retired and its rows are downloaded, at ${width}`, async () => {
    const { id } = await server.upload({ name: "spent flights", questions: 20 });
    await server.call("POST", `/v1/holdouts/${id}/queries`, { type: "fraction", of: "delay > 15" });
    const analyst = await server.call("POST", "/v1/keys", { name: "analyst", scope: "analyst" });
    const theirs = await openPage(browser, server, { width, theme, key: analyst.secret });
    await theirs.open(`/holdouts/${id}`);
    assert.equal(await theirs.page.getByRole("button", { name: "Retire" }).count(), 0, "an analyst is offered to retire a holdout");
    const p = await openPage(browser, server, { width, theme });
    const { page } = p;
    await p.open(`/holdouts/${id}`);
    const end = page.getByRole("button", { name: "Retire", exact: true });
    await end.click();
    await page.getByText("This cannot be undone.").waitFor();
    await page.getByText("The 19 questions that are left will be gone.").waitFor();
    await inspect(page, "retire");
    await picture(page, `retire-${width}-${theme}`);
    await page.getByRole("button", { name: "Keep it" }).click();
    await end.waitFor();
    assert.equal((await server.call("GET", `/v1/holdouts/${id}`)).ended, undefined, "keeping it has ended it");

    await end.click();
    await page.getByRole("button", { name: "Retire it" }).click();
    await page.getByText("Its rows are released to train on").waitFor();
    assert.equal((await server.call("GET", `/v1/holdouts/${id}`)).ended, "retired");
    await page.getByText("1 question used by all keys, and what was left ended with it.").waitFor(); // the ledger has spent all, and nobody has asked it
    assert.equal(await page.getByText("training was wrong").count(), 0, "tokens that ended with the holdout are called wrong guesses");
    await inspect(page, "retired");
    await picture(page, `retired-${width}-${theme}`);
    assert.equal(await page.getByRole("link", { name: "Ask", exact: true }).and(page.locator(".btn")).count(), 0, "a retired holdout asks to be asked");
    const download = page.waitForEvent("download");
    await page.getByRole("button", { name: "Get the rows that were held out" }).click();
    assert.match((await download).suggestedFilename(), /^released-holdout-ho_.*\.parquet$/);
    await p.done();

    // Who is no admin gets the rows, too, and hears what came after.
    await theirs.page.route(`**/v1/holdouts/${id}`, async (route) => {
      const reply = await route.fetch();
      await route.fulfill({ response: reply, json: { ...(await reply.json()), followed_by: ["ho_next"] } });
    });
    await theirs.open(`/holdouts/${id}`);
    await theirs.page.getByRole("button", { name: "Get the rows that were held out" }).waitFor();
    assert.match(await theirs.page.getByRole("link", { name: "See what came after it" }).getAttribute("href"), /ho_next$/);
    await theirs.done();
  });

test("a holdout whose rows another one holds out is not retired, and the page says why", async () => {
  const { id } = await server.upload({ name: "first", questions: 20, holdout: 0.2 });
  await server.call("POST", `/v1/holdouts/${id}/queries`, { type: "fraction", of: "delay > 15" });
  const p = await openPage(browser, server);
  const { page } = p;
  await page.route(`**/v1/holdouts/${id}/retire`, (route) => route.fulfill({ status: 409, contentType: "application/problem+json", json: { code: "holdout-exists", title: "Known", detail: "rows of this holdout are held out by ho_other, too. Retire or delete it first" } }));
  p.expect(/status of 409/);
  await p.open(`/holdouts/${id}`);
  await page.getByRole("button", { name: "Retire", exact: true }).click();
  await page.getByRole("button", { name: "Retire it" }).click();
  await page.getByRole("alert").filter({ hasText: "Rows of this holdout are held out by ho_other, too. Retire or delete it first." }).waitFor();
  await p.done();
});
