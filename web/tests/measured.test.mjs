// A measured answer: offered beside a check, asked for at its price, and told from a wrong guess afterwards.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { inspect, openPage, picture, startBrowser, startServer } from "./harness.mjs";

let server, browser;
before(async () => ([server, browser] = await Promise.all([startServer(), startBrowser()])));
after(async () => {
  await browser?.close();
  await server?.stop();
});

test("a question is measured", async () => {
  const { id } = await server.upload({ name: "flights", holdout: 0.5, questions: 400, tokens: 5, mechanism: "guess_and_check" });
  const p = await openPage(browser, server, {});
  const { page } = p;
  await p.open(`/holdouts/${id}/ask`);
  await page.getByLabel("Share of rows in which").fill("delay > 15");
  await page.getByText("Measured, the value is the holdout's own").waitFor();
  await picture(page, "measured-offered");
  await page.getByRole("button", { name: "Measure it" }).click();
  await page.getByRole("button", { name: "Ask for 10 questions" }).waitFor();
  assert.equal(await page.getByText("If training is wrong, also").count(), 0);
  await page.getByRole("button", { name: "Check a guess instead" }).click();
  await page.getByRole("button", { name: "Ask for 1 question" }).waitFor();
  await page.getByRole("button", { name: "Measure it" }).click();
  await page.getByRole("button", { name: "Ask for 10 questions" }).waitFor();
  await inspect(page, "measured-preview");
  await picture(page, "measured-preview");
  await page.getByRole("button", { name: "Ask for 10 questions" }).click();
  await page.getByText("The value is from the holdout.").waitFor();
  await inspect(page, "measured-answer");
  await picture(page, "measured-answer");
  await p.open(`/holdouts/${id}`);
  await page.getByText("1 used: 1 measured answer.").waitFor();
  await page.getByText("measured · 1 token").waitFor();
  assert.equal(await page.getByText("was wrong").count(), 0);
  await inspect(page, "measured-history");
  await picture(page, "measured-history");
});
