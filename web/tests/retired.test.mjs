// A holdout that was retired: its rows can be had, nothing can be asked, and the one that comes after it is linked.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { inspect, openPage, picture, startBrowser, startServer } from "./harness.mjs";

let server, browser;
before(async () => ([server, browser] = await Promise.all([startServer(), startBrowser()])));
after(async () => {
  await browser?.close();
  await server?.stop();
});

test("a retired holdout gives its rows and leads to the next", async () => {
  const { id } = await server.upload({ name: "spring", holdout: 0.5, questions: 40, tokens: 5, mechanism: "guess_and_check" });
  const path = `/v1/holdouts/${id}`;
  await server.call("POST", `${path}/queries`, { type: "fraction", of: "delay > 15" });
  await server.call("POST", `${path}/retire`);
  const p = await openPage(browser, server, {});
  const { page } = p;
  await p.open("/");
  await page.getByText("Its rows were released").waitFor();
  await p.open(`/holdouts/${id}`);
  await page.getByText("Retired: nothing more is answered").waitFor();
  for (const name of ["Ask", "Final report"]) assert.equal(await page.getByRole("link", { name, exact: true }).count(), 0, name);
  for (const untrue of ["was wrong", "No questions left", "No tokens left"]) assert.equal(await page.getByText(untrue).count(), 0, untrue);
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("link", { name: "Get the released rows" }).click()]);
  assert.equal(download.suggestedFilename(), `retired-${id}.parquet`);
  assert.equal(await download.failure(), null);
  await inspect(page, "retired");
  await picture(page, "retired");
  p.expect(/status of 4\d\d/);
  await p.open(`/holdouts/${id}/ask?q=${encodeURIComponent('{"type":"fraction","of":"delay > 99"}')}`);
  await page.getByRole("heading", { name: "Retired" }).waitFor();
  assert.equal(await page.locator("form").count(), 0, "a retired holdout has no form");
  await page.getByText("answered before the holdout was retired").waitFor();
  await inspect(page, "ask-retired");
  await picture(page, "ask-retired");
  await p.open(`/holdouts/${id}/report`);
  await page.getByText("was retired without one").waitFor();
  await p.done();
});
