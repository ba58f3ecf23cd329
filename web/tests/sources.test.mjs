// A table that stays where it is: from the form to the page of its holdout, what is said on the way, and what becomes of one that is refused or cancelled.
import assert from "node:assert/strict";
import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, beforeEach, test } from "node:test";
import { flightsFile, inspect, openPage, picture, startBrowser, startServer } from "./harness.mjs";

let server, browser, lake;
before(async () => (browser = await startBrowser()));
after(() => browser?.close());
beforeEach(async () => {
  lake = mkdtempSync(join(tmpdir(), "holdoutd-lake-"));
  mkdirSync(join(lake, "flights"));
  copyFileSync(flightsFile, join(lake, "flights", "a.parquet"));
  server = await startServer(undefined, undefined, ["--source", `lake=file://${lake}`]);
});
afterEach(async () => {
  await server?.stop();
  rmSync(lake, { recursive: true, force: true });
});

for (const [width, theme] of [[1280, "light"], [390, "dark"]])
  test(`a table of a source is refused, registered again and asked, at ${width}`, async () => {
    const p = await openPage(browser, server, { width, theme });
    const { page } = p;
    await p.open("/upload");
    await page.getByRole("button", { name: "A table of a source" }).click();
    await page.getByRole("heading", { name: "The table" }).waitFor();
    await inspect(page, "source-form");
    await picture(page, `source-form-${width}-${theme}`);
    assert.ok(await page.getByRole("button", { name: "Register" }).isDisabled(), "a table without a name can be registered");

    p.expect(/status of 4\d\d/);
    await page.getByLabel("Table", { exact: true }).fill("nosuch");
    await page.getByLabel("Questions").fill("many");
    await page.getByRole("button", { name: "Register" }).click();
    await page.getByRole("alert").filter({ hasText: "must be a whole number" }).waitFor();
    await inspect(page, "source-field");
    await picture(page, `source-field-${width}-${theme}`);
    await page.getByLabel("Questions").fill("60");
    await page.getByRole("button", { name: "Register" }).click();
    await page.getByRole("heading", { name: "No holdout was made" }).waitFor();
    await inspect(page, "registration-failed");
    await picture(page, `registration-failed-${width}-${theme}`);

    await page.getByRole("link", { name: "Register it again" }).click();
    await page.getByRole("heading", { name: "The table" }).waitFor();
    assert.equal(await page.getByLabel("Table", { exact: true }).inputValue(), "nosuch");
    await page.getByLabel("Table", { exact: true }).fill("flights");
    await page.getByLabel("Name", { exact: true }).fill("flights there");
    await page.getByLabel("Questions").fill("60");
    await page.getByRole("button", { name: "Register" }).click();
    await page.waitForURL(/\/holdouts\/ho_/);
    await page.getByRole("heading", { name: "flights there" }).waitFor();
    await page.getByText("lake (files)").waitFor();
    await inspect(page, "source-holdout");
    await picture(page, `source-holdout-${width}-${theme}`);
    const download = page.waitForEvent("download");
    await page.getByRole("button", { name: "Get the training part" }).click();
    await (await download).cancel();
    await p.done();
  });

for (const [width, theme] of [[1280, "dark"], [390, "light"]])
  test(`how far a registration is, and its end before the end, at ${width}`, async () => {
    const p = await openPage(browser, server, { width, theme });
    const { page } = p;
    // Held at a stage, which a small table is through in no time.
    const held = { id: "re_held", source: "lake", table: "flights", name: "flights", stage: "dividing", rows: 5_000_000, done: 1_720_000, begun: "2026-11-23T05:00:00Z" };
    await page.route("**/v1/registrations", (route) => route.fulfill({ json: { registrations: [held] } }));
    await page.route("**/v1/registrations/re_held", (route) => {
      if (route.request().method() === "DELETE") held.stage = "cancelled";
      return route.fulfill({ json: held });
    });
    await p.open("/holdouts");
    await page.getByText("Dividing the rows, 34% of 5,000,000 rows").waitFor();
    await inspect(page, "registration-listed");
    await picture(page, `registration-listed-${width}-${theme}`);
    await page.getByRole("link", { name: "flights" }).click();
    await page.getByRole("heading", { name: "Dividing the rows" }).waitFor();
    await page.getByText("34% of 5,000,000 rows").waitFor();
    await inspect(page, "registration");
    await picture(page, `registration-${width}-${theme}`);
    await page.getByRole("button", { name: "Cancel" }).click();
    await page.getByText("What was made of it is removed.").waitFor();
    await inspect(page, "registration-cancel");
    await picture(page, `registration-cancel-${width}-${theme}`);
    await page.getByRole("button", { name: "Cancel it" }).click();
    await page.getByRole("heading", { name: "Cancelled" }).waitFor();
    await inspect(page, "registration-cancelled");
    await p.done();
  });

test("a large upload is followed to its holdout", async () => {
  await server.stop();
  server = await startServer(undefined, undefined, ["--at-once", "1MiB"]);
  const p = await openPage(browser, server);
  const { page } = p;
  await p.open("/upload?questions=60");
  await page.locator("input[type=file]").setInputFiles(flightsFile);
  await page.getByRole("heading", { name: "2. Settle" }).waitFor();
  await page.getByText("60 questions at about ±").waitFor();
  await page.getByLabel("Name").fill("large flights");
  await page.getByText("60 questions at about").first().waitFor();
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByRole("heading", { name: "Then these are fixed" }).waitFor();
  await page.getByRole("button", { name: "Create it" }).click();
  await page.waitForURL(/\/holdouts\/ho_/);
  await page.getByRole("heading", { name: "large flights" }).waitFor();
  await page.route("**/v1/registrations/re_held", (route) => route.fulfill({ json: { id: "re_held", name: "large flights", stage: "dividing", rows: 5_000_000, done: 1_720_000 } }));
  await p.open("/registrations/re_held");
  await page.getByText("A large upload").waitFor();
  await inspect(page, "registration-of-an-upload");
  await p.done();
});

test("a training part of several files, and a registration that the server has forgotten", async () => {
  const p = await openPage(browser, server);
  const { page } = p;
  const { id } = await server.upload({ name: "flights", questions: 20 });
  // The card and the header of a table that is larger than one to test with.
  await page.route(`**/v1/holdouts/${id}`, async (route) => {
    const reply = await route.fetch();
    await route.fulfill({ response: reply, json: { ...(await reply.json()), source: { name: "lake", kind: "clickhouse", table: "db.flights" }, training_pieces: 3 } });
  });
  await page.route(`**/v1/holdouts/${id}/training?piece=0`, (route) => route.fulfill({ headers: { "X-Holdoutd-Pieces": "3" } }));
  await p.open(`/holdouts/${id}`);
  await page.getByText("lake (ClickHouse)").waitFor();
  await page.getByRole("button", { name: "Get the training part" }).click();
  await page.getByText("The training part is 3 files").waitFor();
  assert.deepEqual(await page.locator(".pieces li a").evaluateAll((links) => links.map((a) => new URL(a.href).search)), ["?piece=0", "?piece=1", "?piece=2"]);
  await inspect(page, "source-pieces");
  await picture(page, "source-pieces");
  p.expect(/status of 404/);
  await p.open("/registrations/re_gone");
  await page.getByRole("heading", { name: "There is no such registration" }).waitFor();
  await p.done();
});
