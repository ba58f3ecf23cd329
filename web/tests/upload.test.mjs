// From a file to a holdout: what cannot become one, what is to be settled, and one table, one budget.
import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, test } from "node:test";
import { customersFile, flightsFile, inspect, openPage, picture, repeatedFile, startBrowser, startServer } from "./harness.mjs";

let server, browser;
before(async () => (browser = await startBrowser()));
after(() => browser?.close());
// A table stays known to a server for ever: each test has a new one.
beforeEach(async () => (server = await startServer()));
afterEach(() => server?.stop());

for (const [width, theme] of [[1280, "light"], [390, "dark"]])
  test(`a file is refused, another settled and created, at ${width}`, async () => {
    const p = await openPage(browser, server, { width, theme });
    const { page } = p;
    await p.open("/upload?questions=60&tokens=5");
    const file = page.locator("input[type=file]");
    p.expect(/status of 4\d\d/);
    await file.setInputFiles({ name: "table.csv", mimeType: "text/csv", buffer: Buffer.from("a,b\n1,2\n") });
    await page.getByRole("alert").filter({ hasText: "not Parquet" }).waitFor();
    await inspect(page, "upload-refused");
    await picture(page, `upload-refused-${width}`);

    await file.setInputFiles(flightsFile);
    await page.getByRole("heading", { name: "2. Settle" }).waitFor();
    await page.getByText("60 questions.").waitFor();
    // Rows of one destination are alike, and so are those of one origin: of which a server says so hangs on the rows that its key holds out.
    const alike = page.getByRole("button", { name: /^Count each (destination|origin) once/ });
    await alike.filter({ hasText: "±" }).waitFor(); // what either choice would give, before one is taken
    const [, unit] = /Count each (\w+) once/.exec(await alike.innerText());
    await inspect(page, "upload-settle");
    await picture(page, `upload-settle-${width}-${theme}`);
    await unsaid(page);
    await page.getByRole("button", { name: "Keep rows" }).click();
    await page.getByText("60 questions at about ±").waitFor();
    const rows = await page.locator(".big").innerText();
    await alike.click();
    const observation = page.locator("dd", { hasText: /^one / });
    await observation.filter({ hasText: `one ${unit}` }).waitFor();
    // Other choices, and their widths, come in meanwhile. A click whose button moves between press and release is none.
    await page.waitForFunction(() => [...document.querySelectorAll(".option")].every((b) => b.textContent.includes("±")));
    await page.locator(".promise:not(.outdated)").waitFor();
    assert.notEqual(await page.locator(".big").innerText(), rows);
    await page.getByRole("button", { name: "Keep rows" }).click();
    await observation.filter({ hasText: "one row" }).waitFor();

    for (const [label, wrong, says] of [["Questions", "many", "must be a whole number"], ["Held out", "1.5", "holdout"], ["Confidence", "2", "confidence"]]) {
      const field = page.getByLabel(label, { exact: false }).first();
      const before = await field.inputValue();
      await field.fill(wrong);
      await page.getByRole("alert").filter({ hasText: new RegExp(says, "i") }).first().waitFor();
      if (label === "Questions") {
        await inspect(page, "upload-field");
        await picture(page, `upload-field-${width}-${theme}`);
      }
      assert.ok(await page.getByRole("button", { name: "Create" }).isDisabled(), `${label}: what is wrong can be created`);
      await field.fill(before);
      await page.waitForFunction(() => !document.querySelector("[aria-invalid]"));
    }
    await page.getByLabel("Name").fill(`flights ${width}`);
    await page.getByLabel("Questions").fill(String(width));
    await page.getByText(`${width.toLocaleString("en")} questions at about`).waitFor();
    await page.getByRole("button", { name: "Create" }).click();
    await page.getByRole("heading", { name: "Then these are fixed" }).waitFor();
    await inspect(page, "upload-confirm");
    await picture(page, `upload-confirm-${width}-${theme}`);
    await page.getByRole("button", { name: "Create it" }).click();
    await page.waitForURL(/\/holdouts\/ho_/);
    const id = page.url().split("/").pop();

    // Once something was asked, the table has its one budget.
    await server.call("POST", `/v1/holdouts/${id}/queries`, { type: "fraction", of: "delay > 15" });
    await p.open("/upload");
    await file.setInputFiles(flightsFile);
    await page.getByText("One table has one budget.").waitFor();
    await inspect(page, "upload-known");
    await picture(page, `upload-known-${width}`);
    await page.getByRole("link", { name: "Open it" }).click();
    await page.waitForURL(new RegExp(`/holdouts/${id}`));
    await p.done();
  });

for (const [width, theme] of [[1280, "light"], [390, "dark"]])
  test(`customers that come again, at ${width}`, async () => {
    const p = await openPage(browser, server, { width, theme });
    const { page } = p;
    await p.open("/upload");
    p.expect(/status of 422/);
    await page.locator("input[type=file]").setInputFiles(customersFile);
    await page.getByRole("heading", { name: "What is one observation?" }).waitFor();
    assert.equal(await page.getByRole("button", { name: "Create" }).count(), 0, "nothing can be made before that is said");
    await inspect(page, "upload-undecided");
    await picture(page, `upload-undecided-${width}-${theme}`);
    await page.getByRole("button", { name: "Count each customer_id once" }).click();
    await page.locator("dd", { hasText: "one customer_id" }).waitFor();
    assert.equal(await page.getByLabel("One observation is").inputValue(), "customer_id");
    await page.getByLabel("One observation is").selectOption({ label: "one row" });
    await page.locator("dd", { hasText: "one row" }).waitFor();
    await page.getByText("rows of one customer_id are on both sides").first().waitFor();
    await picture(page, `upload-repeated-${width}-${theme}`);
    await p.done();
  });

/** Nothing is chosen for the reader where rows are alike by a column, and nothing can be made before he has. */
async function unsaid(page) {
  assert.equal(await page.locator(".option[aria-pressed=true]").count(), 0, "a choice is taken before anybody chose");
  assert.equal(await page.getByLabel("One observation is").locator("option:checked").innerText(), "to be said");
  assert.ok(await page.getByRole("button", { name: "Create" }).isDisabled(), "created without saying what one observation is");
  await page.getByText("Say first what one observation is.").waitFor();
}

test("customers by a column that is called k", async () => {
  const p = await openPage(browser, server);
  const { page } = p;
  await p.open("/upload");
  await page.locator("input[type=file]").setInputFiles(repeatedFile);
  await page.getByText("Rows with the same k are alike").waitFor();
  await unsaid(page);
  await inspect(page, "upload-k");
  await picture(page, "upload-k");
  await page.getByLabel("One observation is").selectOption({ label: "one row" });
  await page.locator("dd", { hasText: "one row" }).waitFor();
  assert.equal(await page.getByRole("button", { name: "Keep rows" }).getAttribute("aria-pressed"), "true");
  await page.getByRole("button", { name: "Count each k once" }).click();
  await page.locator("dd", { hasText: "one k" }).waitFor();
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByRole("button", { name: "Create it" }).click();
  await page.waitForURL(/\/holdouts\/ho_/);
  assert.equal((await server.call("GET", `/v1/holdouts/${page.url().split("/").pop()}`)).unit, "k");
  await p.done();
});

test("a dropped file, an analyst, and a server that is away", async () => {
  const p = await openPage(browser, server);
  const { page } = p;
  await p.open("/upload");
  const dropped = await page.evaluateHandle(() => {
    const data = new DataTransfer();
    data.items.add(new File(["PAR1 but no table"], "table.parquet"));
    return data;
  });
  p.expect(/status of 4\d\d|ERR_/);
  await page.dispatchEvent(".drop", "drop", { dataTransfer: dropped });
  await page.getByRole("alert").filter({ hasText: "." }).waitFor();
  await p.context.setOffline(true);
  await page.locator("input[type=file]").setInputFiles(flightsFile);
  await page.getByText("sending again never makes two").waitFor();
  await p.context.setOffline(false);
  await page.getByRole("button", { name: "Try again" }).click();
  await page.getByText("1,000 questions.").waitFor();
  await p.done();

  const analyst = await server.call("POST", "/v1/keys", { name: "ana", scope: "analyst" });
  const theirs = await openPage(browser, server, { key: analyst.secret });
  await theirs.open("/upload");
  await theirs.page.getByText("Tables are uploaded by an admin").waitFor();
  await theirs.done();
});

test("a holdout of declared cells: what is no cell is said at its field, and the card has their number", async () => {
  const p = await openPage(browser, server, { width: 1280, theme: "light" });
  const { page } = p;
  await p.open("/upload?questions=60&unit=row");
  await page.locator("input[type=file]").setInputFiles(flightsFile);
  await page.getByText("60 questions at about ±").waitFor();
  const cells = page.getByLabel("Cells", { exact: true });
  p.expect(/status of 422/);
  await cells.fill('{"delay":[0,');
  await page.getByRole("alert").filter({ hasText: "cells" }).waitFor();
  await inspect(page, "upload-cells");
  await picture(page, "upload-cells");
  await cells.fill('{"delay":[0,15,60]}');
  await page.locator("dt", { hasText: /^Cells$/ }).waitFor();
  await page.locator(".promise:not(.outdated)").waitFor();
  assert.deepEqual(await page.locator("dt", { hasText: /^(Cells|Mechanism)$/ }).evaluateAll((all) => all.map((e) => e.nextElementSibling.textContent)), ["4", "cells"]);
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByRole("button", { name: "Create it" }).click();
  await page.waitForURL(/\/holdouts\/ho_/);
  await p.done();
});
