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
  assert.equal(await page.getByRole("link", { name: "Final report" }).getAttribute("href"), `/holdouts/${id}/report`);
  // The page for questions says so instead of its form, and leads to the report; an earlier answer is shown again.
  p.expect(/status of 4\d\d/);
  await p.open(`/holdouts/${id}/ask`);
  await page.getByRole("heading", { name: "Closed by its final report" }).waitFor();
  const day = await page.evaluate((time) => new Date(time).getFullYear(), made.time);
  await page.getByText(new RegExp(`^Closed on .*${day} by`)).waitFor();
  assert.equal(await page.locator("form").count(), 0, "a closed holdout has no form");
  await inspect(page, "ask-closed");
  await picture(page, "ask-closed");
  await page.getByRole("link", { name: "Final report" }).click();
  await page.getByRole("heading", { name: "Spring" }).waitFor();
  await p.open(`/holdouts/${id}/ask?q=${encodeURIComponent('{"type":"fraction","of":"delay > 15"}')}`);
  await page.getByRole("button", { name: "Show again, free" }).click();
  await page.getByText("free, answered before").waitFor();
  await inspect(page, "ask-closed-again");
  await picture(page, "ask-closed-again");
  await p.open(`/holdouts/${id}/ask?q=${encodeURIComponent('{"type":"fraction","of":"delay > 99"}')}`);
  await page.getByText("This question was not answered before").waitFor();
  assert.equal(await page.getByRole("button").filter({ hasText: /^(Ask|Show)/ }).count(), 0, "nothing can be asked");
  await p.open(`${path}/report.html`); // with the cookie of the page
  await page.getByText(made.ledger.head).first().waitFor();
  await inspect(page, "report");
  await picture(page, "report");
});

test("a report is chosen among what was asked, planned, and closes the holdout", async (t) => {
  const server = await startServer(); // the other one has this table already
  t.after(() => server.stop());
  const { id } = await server.upload({ name: "late flights", holdout: 0.4, questions: 60, tokens: 5, mechanism: "guess_and_check" });
  const queries = `/v1/holdouts/${id}/queries`;
  await server.call("POST", queries, { type: "fraction", of: "delay > 15", note: "late" });
  await server.call("POST", queries, { type: "fraction", of: "delay > 15", measure: true });
  await server.call("POST", queries, { type: "mean", of: "delay", range: [-60, 180] });
  const phone = await openPage(browser, server, { width: 390, theme: "dark" });
  await phone.open(`/holdouts/${id}/report`);
  await phone.page.getByRole("checkbox").first().check();
  await phone.page.getByText(/^about ±/).waitFor();
  await inspect(phone.page, "report being chosen, phone");
  await picture(phone.page, "report-choose-390-dark");
  await phone.done();
  const p = await openPage(browser, server, { permissions: ["clipboard-read", "clipboard-write"] });
  const { page } = p;
  await p.open(`/holdouts/${id}`);
  await page.getByRole("link", { name: "Final report" }).click();
  await page.getByText("Nothing is chosen yet").waitFor();
  assert.equal(await page.getByRole("checkbox").count(), 2, "a number that was asked for and measured is one choice");
  for (const box of await page.getByRole("checkbox").all()) await box.check();
  assert.equal(await page.getByLabel("Name in the report").last().inputValue(), "late");
  await page.getByLabel("Name in the report").last().fill("late by a quarter");
  await page.getByText(/^about ±/).nth(1).waitFor();
  await page.getByLabel("Title").fill("Spring");
  await inspect(page, "report being chosen");
  await picture(page, "report-choose");
  assert.ok(!(await server.call("GET", `/v1/holdouts/${id}/budget`)).closed, "a plan closes nothing");
  await page.getByRole("button", { name: "Close with this report" }).click();
  await page.getByRole("button", { name: "Not yet" }).click();
  await page.getByRole("button", { name: "Close with this report" }).click();
  await page.getByRole("button", { name: "Close it" }).click();
  await page.getByRole("heading", { name: "Spring" }).waitFor();
  const made = await server.call("GET", `/v1/holdouts/${id}/report`);
  assert.deepEqual(made.answers.map((a) => a.note), [null, "late by a quarter"]);
  await page.getByText(made.ledger.head).first().waitFor();
  await page.getByRole("button", { name: "Copy", exact: true }).click();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), made.text);
  assert.equal(await page.getByRole("link", { name: "As a page to attach" }).getAttribute("href"), `/v1/holdouts/${id}/report.html`);
  await inspect(page, "the report");
  await picture(page, "report-made");
  await p.open(`/holdouts/${id}/report`); // again, as somebody else comes to it
  await page.getByText("late by a quarter").first().waitFor();
  await p.done();
});
