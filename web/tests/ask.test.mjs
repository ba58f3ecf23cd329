// One question after the other, from the first letter to a budget that is spent.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { customers, inspect, openPage, picture, startBrowser, startServer } from "./harness.mjs";

let server, browser;
before(async () => ([server, browser] = await Promise.all([startServer(), startBrowser()])));
after(async () => {
  await browser?.close();
  await server?.stop();
});

test("from typing to an answer, a wrong guess, a replay, and no question left", async () => {
  const holdout = await server.upload({ name: "flights", holdout: 0.5, questions: 12, tokens: 2, mechanism: "guess_and_check" });
  const p = await openPage(browser, server, {});
  const { page } = p;
  p.expect(/status of 422/); // what is half typed, and what is misspelled
  await p.open(`/holdouts/${holdout.id}/ask`);
  const of = page.getByLabel("Share of rows in which");
  await of.pressSequentially("de");
  await page.getByRole("option", { name: /^delay/ }).waitFor();
  await inspect(page, "ask-proposals");
  await picture(page, "ask-proposals");
  await page.keyboard.press("ArrowDown"); // destination
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("Enter");
  assert.equal(await of.inputValue(), "delay");
  await of.pressSequentially(" > 15");
  const button = page.getByRole("button", { name: "Ask for 1 question" });
  await button.waitFor();
  for (const words of ["If training is close", "If it is not", "The training value is", "1 question", "1 token"]) await page.getByText(words, { exact: false }).first().waitFor();
  await page.getByText('ds.fraction("delay > 15")').waitFor();
  await inspect(page, "ask-preview");
  await picture(page, "ask-preview");
  assert.equal((await server.call("GET", `/v1/holdouts/${holdout.id}/budget`)).questions.left, 12, "the preview costs nothing");

  await page.getByLabel(/^Note/).fill("late");
  await page.keyboard.press("Control+Enter");
  await page.getByText("11 questions and 2 tokens left.").waitFor();
  assert.equal(await page.evaluate(() => document.activeElement.id), "answer", "focus goes to the answer");
  await inspect(page, "ask-answer");
  await picture(page, "ask-answer");
  const [recorded] = (await server.call("GET", `/v1/holdouts/${holdout.id}/answers`)).answers;
  assert.deepEqual([recorded.canonical, recorded.note], [{ of: "delay > 15", type: "fraction" }, "late"]);

  // The same in another spelling is free, and says so before.
  await page.getByRole("button", { name: "Ask something else" }).click();
  await of.fill("15 < (delay)");
  await page.getByRole("button", { name: "Show again, free" }).click();
  await page.getByText("free, answered before").waitFor();

  // What is misspelled is underlined where it stands, and mended by a click.
  await of.fill("dleay > 30");
  await page.getByText("There is no column").waitFor();
  assert.equal(await page.locator(".editor .wrong").innerText(), "dleay");
  await inspect(page, "ask-error");
  await picture(page, "ask-error");
  await page.getByRole("button", { name: "Use it" }).click();
  assert.equal(await of.inputValue(), "delay > 30");
  await button.waitFor();

  // A guess that is far off costs a token, and the answer is where the holdout is.
  await page.getByText("More settings").click();
  await page.getByLabel(/^Your own guess/).fill("0.9");
  await page.getByText("If the guess is wrong, also").waitFor();
  await button.click();
  await page.getByText("The guess was wrong", { exact: true }).waitFor();
  await page.getByText("10 questions and 1 token left.").waitFor();
  await inspect(page, "ask-wrong");
  await picture(page, "ask-wrong");

  // A price above a tenth is said again before it is paid; the last token, too.
  await page.getByRole("radio", { name: "Groups" }).click();
  await page.getByLabel(/^By/).fill("origin");
  await page.getByLabel(/^Of/).fill("delay > 15");
  await page.getByLabel(/^Values/).fill("ATL, ORD, DFW");
  const dear = page.getByRole("button", { name: /Ask for \d+ questions/ });
  await dear.click();
  await page.getByText("This is more than a tenth of what is left").waitFor();
  await inspect(page, "ask-confirm");
  await picture(page, "ask-confirm");
  await page.getByRole("button", { name: "Change it" }).click();
  await dear.click();
  await page.locator("#sure").click();
  await page.locator("#answer").waitFor();
  await picture(page, "ask-groups");

  for (let budget; (budget = await server.call("GET", `/v1/holdouts/${holdout.id}/budget`)).questions.left > 0; )
    await server.call("POST", `/v1/holdouts/${holdout.id}/queries?max_questions=12`, { type: "fraction", of: `distance > ${budget.questions.left * 100}` });
  await p.open(`/holdouts/${holdout.id}/ask?q=${encodeURIComponent('{"type":"fraction","of":"delay > 99"}')}`);
  await page.getByText("No questions left. Earlier answers still replay, at no cost.").waitFor();
  await p.open(`/holdouts/${holdout.id}`);
  await page.getByText("No questions left.").waitFor();
  await inspect(page, "spent");
  await picture(page, "spent");
  await p.open("/holdouts");
  await page.getByText("No questions left.").waitFor();
  await inspect(page, "holdouts-spent");
  await p.done();
});

test("every type of question has a form that opens", async () => {
  const holdout = (await server.call("GET", "/v1/holdouts")).holdouts[0] ?? (await server.upload({ name: "flights", holdout: 0.5 }));
  const p = await openPage(browser, server, { width: 390, theme: "dark" });
  const { page } = p;
  p.expect(/status of 4\d\d/); // what is half filled in
  await p.open(`/holdouts/${holdout.id}/ask`);
  for (const radio of await page.getByRole("radio").all()) {
    await radio.click();
    const kinds = await page.locator(".subtypes button").all();
    for (const kind of kinds.length ? kinds : [radio]) {
      await kind.click();
      await page.locator("form .fieldset").first().waitFor();
    }
    await inspect(page, `ask-${await radio.innerText()}`);
  }
  await picture(page, "ask-more-390");
  await p.done();
});

test("what is said of one form does not stand beside another", async () => {
  const holdout = await server.upload({ name: "customers", unit: "customer_id", holdout: 0.5, questions: 20 }, customers);
  const p = await openPage(browser, server);
  const { page } = p;
  await p.open(`/holdouts/${holdout.id}/ask?q=${encodeURIComponent('{"type":"mean","of":"visits","range":[0,10]}')}`);
  const said = page.getByText("If the holdout disagrees");
  await said.waitFor();
  await page.getByRole("radio", { name: "Groups" }).click();
  await said.waitFor({ state: "detached" });
  await p.done();
});
