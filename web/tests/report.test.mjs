// A holdout that its final report has closed: the page leads to the report and no more to questions.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { inspect, openPage, picture, startBrowser, startServer } from "./harness.mjs";

let server, browser;
before(async () => ([server, browser] = await Promise.all([startServer(), startBrowser()])));
after(async () => {
  await browser?.close();
  await server?.stop();
});

test("a closed holdout leads to its report", async () => {
  const { id } = await server.upload({ name: "flights", holdout: 0.5, questions: 40, tokens: 5, mechanism: "guess_and_check" });
  const path = `/v1/holdouts/${id}`;
  await server.call("POST", `${path}/queries`, { type: "fraction", of: "delay > 15" });
  const queries = [{ type: "fraction", of: "delay > 15", note: "late" }, { type: "mean", of: "delay", range: [-60, 180] }];
  const made = await server.call("POST", `${path}/report`, { queries, title: "Spring", close: true });
  const p = await openPage(browser, server, {});
  const { page } = p;
  await p.open(`/holdouts/${id}`);
  await page.getByText("Closed by its final report").waitFor();
  assert.equal(await page.getByRole("link", { name: "Ask", exact: true }).count(), 0);
  await page.getByText("late").first().waitFor();
  for (const untrue of ["was wrong", "No questions left"]) assert.equal(await page.getByText(untrue).count(), 0, untrue);
  await inspect(page, "closed");
  await picture(page, "closed");
  assert.equal(await page.getByRole("link", { name: "Final report" }).getAttribute("href"), `${path}/report.html`);
  await p.open(`/holdouts/${id}/ask`);
  await page.getByLabel("Share of rows in which").fill("delay > 30");
  await page.getByText("Closed by its final report.").waitFor();
  await p.open(`${path}/report.html`); // with the cookie of the page
  await page.getByText(made.ledger.head).first().waitFor();
  await inspect(page, "report");
  await picture(page, "report");
});
