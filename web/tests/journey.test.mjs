// The way of a table, from its upload to the last question, in one window: asked on the page, seen live in another, refused in words.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { flightsFile, inspect, openPage, picture, startBrowser, startServer } from "./harness.mjs";

let server, browser;
before(async () => ([server, browser] = await Promise.all([startServer(), startBrowser()])));
after(async () => {
  await browser?.close();
  await server?.stop();
});

test("from an upload to a spent budget", async () => {
  const p = await openPage(browser, server);
  const { page } = p;
  await p.open("/holdouts");
  await page.getByRole("heading", { name: "No holdouts yet" }).waitFor();
  await inspect(page, "no holdouts");
  await picture(page, "holdouts-none");
  await page.getByRole("link", { name: "Upload a table" }).first().click();
  await page.locator("input[type=file]").setInputFiles(flightsFile);
  await page.getByLabel("Questions").fill("12");
  await page.getByLabel("Tokens").fill("4");
  await page.getByLabel("Held out").fill("0.5");
  await page.getByRole("button", { name: "Keep rows" }).click(); // rows of one day are alike
  await page.getByText("12 questions at about").waitFor();
  await page.getByText("2,500 rows held out").waitFor();
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByRole("button", { name: "Create it" }).click();
  await page.waitForURL(/\/holdouts\/ho_/);
  await page.getByText("Nothing was asked yet").first().waitFor();
  await inspect(page, "one holdout, nothing asked");
  await picture(page, "holdout-empty");
  const id = page.url().split("/").pop();

  // Somebody else looks on.
  const watcher = await openPage(browser, server, { width: 390, theme: "dark" });
  await watcher.open(`/holdouts/${id}`);

  await page.getByRole("link", { name: "Ask", exact: true }).first().click();
  const of = page.getByLabel("Share of rows in which");
  const question = async (text) => {
    await of.fill(text);
    await page.keyboard.press("Escape"); // the proposals
  };
  const askIt = page.getByRole("region", { name: "Before you ask" }).getByRole("button", { name: /^Ask for 1 question/ });

  p.expect(/status of 422/); // explain says what is wrong
  await question("dleay > 15");
  await page.getByRole("button", { name: "Use it" }).first().waitFor();
  await page.waitForTimeout(300);
  await inspect(page, "a typing error");
  await picture(page, "ask-error");
  await page.getByRole("button", { name: "Use it" }).first().click();
  await askIt.waitFor();
  await page.locator("#note").fill("first look");
  await picture(page, "ask-before");
  await askIt.click();
  await page.getByRole("region", { name: "The answer" }).waitFor();
  await page.getByText("11 questions and").first().waitFor();
  assert.equal(await page.evaluate(() => document.activeElement.id), "answer", "focus goes to the answer");
  await inspect(page, "an answer");
  await picture(page, "ask-after");

  await watcher.page.getByText("first look").first().waitFor(); // without loading anything again
  await inspect(watcher.page, "an answer that came while somebody looked");
  await picture(watcher.page, "holdout-live-390-dark");
  await watcher.done();

  // The same in another spelling is free.
  await page.getByRole("button", { name: "Ask something else" }).click();
  await question("15 < delay");
  await page.getByRole("button", { name: "Show again, free" }).click();
  await page.getByText("free, answered before").waitFor();
  await page.getByText("11 questions and").first().waitFor();

  // A large price is said twice.
  await page.goto(`/holdouts/${id}/ask?q=${encodeURIComponent(JSON.stringify({ type: "groups", of: "delay", range: [-60, 180], by: "origin", values: ["ATL", "ORD", "DFW", "LAX", "DEN", "PHX", "SFO"] }))}`);
  const dear = page.getByRole("button", { name: /^Ask for \d+ questions/ });
  await dear.first().click();
  await page.getByText("This is more than a tenth of what is left").waitFor();
  await inspect(page, "a large price");
  await picture(page, "ask-large");
  await page.getByRole("button", { name: "Change it" }).click();

  // The rest is asked by a program.
  for (let minutes = 20; ; minutes += 5) {
    const { questions } = await server.call("GET", `/v1/holdouts/${id}/budget`);
    if (questions.left === 0) break;
    await server.call("POST", `/v1/holdouts/${id}/queries`, { type: "fraction", of: `delay > ${minutes}` });
  }
  await page.goto(`/holdouts/${id}/ask`);
  await page.getByText("0 questions").first().waitFor();
  await question("delay > 1");
  await page.getByText("No questions left").first().waitFor();
  await inspect(page, "a spent budget");
  await picture(page, "ask-spent");
  await question("delay > 15");
  await page.getByRole("button", { name: "Show again, free" }).click(); // what was answered stays
  await page.getByText("free, answered before").waitFor();
  await p.open(`/holdouts/${id}`);
  await page.getByText("of 12 left").waitFor();
  await inspect(page, "a holdout that is spent");
  await picture(page, "holdout-spent");
  await p.open("/holdouts");
  await picture(page, "holdouts-spent");
  await inspect(page, "holdouts with a spent one");
  await p.done();
});

test("a server that is away while somebody asks, and comes back", async (t) => {
  const own = await startServer();
  t.after(() => own.stop());
  const holdout = await own.upload({ name: "flights", holdout: 0.5, questions: 100 });
  const p = await openPage(browser, own);
  const { page } = p;
  p.expect(/ERR_|status of 401/);
  await p.open(`/holdouts/${holdout.id}/ask`);
  await page.getByLabel("Share of rows in which").fill("delay > 15");
  await page.keyboard.press("Escape");
  const askIt = page.getByRole("region", { name: "Before you ask" }).getByRole("button", { name: /^Ask for 1 question/ });
  await askIt.waitFor();
  await own.halt();
  await askIt.click();
  await page.getByText("No connection").first().waitFor();
  await inspect(page, "no connection");
  await picture(page, "ask-away");
  // It has forgotten who was signed in, and nothing else.
  const again = await startServer(own.dir, own.addr);
  t.after(() => again.stop());
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  await page.getByLabel("Key", { exact: true }).fill(own.key);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Ask", exact: true }).waitFor();
  const { questions } = await again.call("GET", `/v1/holdouts/${holdout.id}/budget`);
  assert.equal(questions.left, 100, "a question that was not asked costs nothing");
  await p.done();
});
