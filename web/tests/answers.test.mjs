// The answers of one holdout: they come while one looks, can be opened, found, ordered, copied and read as a table, also when there are ten thousand.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { inspect, openPage, picture, startBrowser, startServer } from "./harness.mjs";

let server, browser;
before(async () => ([server, browser] = await Promise.all([startServer(), startBrowser()])));
after(async () => {
  await browser?.close();
  await server?.stop();
});

test("answers come live, and the keyboard does all", async () => {
  const holdout = await server.upload({ name: "flights", holdout: 0.5, questions: 200, tokens: 5, mechanism: "guess_and_check" });
  const ask = (query) => server.call("POST", `/v1/holdouts/${holdout.id}/queries?max_questions=50`, query);
  await ask({ type: "fraction", of: "delay > 15", note: "late" });
  for (const minutes of [20, 30, 40, 50, 60, 70]) await ask({ type: "fraction", of: `delay > ${minutes}` });
  const p = await openPage(browser, server, { permissions: ["clipboard-read", "clipboard-write"] });
  const { page } = p;
  await p.open(`/holdouts/${holdout.id}`);
  await page.getByText("live", { exact: true }).waitFor();
  await page.getByText("7 answers. All agree with training.").waitFor();

  await ask({ type: "mean", of: "delay", range: [-60, 180], guess: 150, note: "how late" });
  const row = page.locator("li.frow.new");
  await row.getByText("the guess was wrong · 1 token").waitFor();
  await page.getByRole("heading", { name: "8 answers." }).waitFor();
  await page.locator(".stats").getByText("192").waitFor(); // the meter follows

  await page.getByRole("button", { name: "Show 1 more" }).click();
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.getByText("The value is from the holdout. The guess was wrong.", { exact: false }).waitFor();
  assert.match(page.url(), /\?row=8$/);
  await inspect(page, "answer-opened");
  await picture(page, "answer-opened");
  await page.keyboard.press("c");
  assert.match(await page.evaluate(() => navigator.clipboard.readText()), /^ds\.mean\("delay", .*range=\(-60, 180\)/);
  await page.getByRole("button", { name: "copy as JSON" }).click();
  assert.equal(JSON.parse(await page.evaluate(() => navigator.clipboard.readText())).note, "how late");

  await page.keyboard.press("v");
  await page.getByRole("button", { name: "Order by time" }).waitFor();
  assert.equal(await page.locator("[aria-label='Share of all rows'] .frow b").first().innerText(), "late"); // the largest
  await page.keyboard.press("/");
  await page.keyboard.type("how la");
  assert.equal(await page.locator("li.frow[data-seq]").count(), 1);
  await page.keyboard.press("Control+a");
  await page.keyboard.press("Delete");
  await page.locator("h1").click();
  await page.keyboard.press("t");
  assert.equal(await page.locator("tbody tr").count(), 8);
  await inspect(page, "answers-table");
  await picture(page, "answers-table");
  await page.keyboard.press("?");
  await page.getByRole("region", { name: "Keys" }).waitFor();
  await inspect(page, "shortcuts");
  await page.keyboard.press("a");
  await page.getByRole("heading", { name: "Ask", exact: true }).waitFor();
  await p.done();
});

test("a server that went away is waited for, and nothing is missed", async () => {
  const holdout = (await server.call("GET", "/v1/holdouts")).holdouts[0] ?? (await server.upload({ name: "flights", holdout: 0.5 }));
  const p = await openPage(browser, server, {});
  const { page } = p;
  await page.clock.install();
  await p.open(`/holdouts/${holdout.id}?row=1`);
  await page.getByText("live", { exact: true }).waitFor();
  p.expect(/ERR_CONNECTION|ERR_INCOMPLETE|status of 401|Failed to fetch|ERR_EMPTY/);
  await server.halt();
  await page.getByText("paused, trying again").waitFor();
  await picture(page, "paused");
  await page.getByRole("link", { name: "Ask", exact: true }).first().click();
  await page.getByText("No connection.").waitFor();
  await inspect(page, "away");
  await picture(page, "away");
  await page.clock.pauseAt(Date.now() + 60_000); // the page's own tries fail, and the next one never comes: it is the click that tries
  await page.getByText("Trying again in").waitFor();
  const again = await startServer(server.dir, server.addr);
  server = again;
  await page.getByRole("button", { name: "Try now" }).click();
  await page.getByRole("heading", { name: "Sign in" }).waitFor(); // a session ends with the server
  await page.clock.resume();
  await page.getByLabel("Key").fill(server.key);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Ask", exact: true }).waitFor(); // where one was
  await p.done();
});

test("ten thousand answers", async () => {
  const own = await startServer(); // one table has one holdout on a server
  try {
    const holdout = await own.upload({ name: "many", holdout: 0.5, questions: 10_000, mechanism: "gaussian" });
    const queries = Array.from({ length: 10_000 }, (_, i) => ({ type: "fraction", of: `delay > ${i / 10 - 60}` }));
    await own.call("POST", `/v1/holdouts/${holdout.id}/queries/batch?max_questions=10000`, { queries });
    const p = await openPage(browser, own, {});
    const { page } = p;
    await p.open(`/holdouts/${holdout.id}`);
    await page.getByText("10,000 answers", { exact: false }).first().waitFor();
    await page.getByText("live", { exact: true }).waitFor();
    await page.getByRole("button", { name: "Show 9,994 more" }).click();
    const elements = () => page.evaluate(() => document.getElementsByTagName("*").length);
    const height = await page.evaluate(() => document.documentElement.scrollHeight);
    assert.ok(height > 10_000 * 40, `all rows have their place: ${height} px`);
    assert.ok((await elements()) < 6000, `rows far away are not drawn: ${await elements()} elements`);
    // To the middle and to the end: rows are there when they come into view, and gone behind it.
    for (const part of [0.5, 1]) {
      await page.evaluate((part) => scrollTo(0, document.documentElement.scrollHeight * part - (part === 1 ? 0 : innerHeight)), part);
      await page.waitForFunction(() => [...document.querySelectorAll("li.frow")].some((row) => row.getBoundingClientRect().top > 0 && row.getBoundingClientRect().bottom < innerHeight));
      assert.ok((await elements()) < 6000, `${await elements()} elements after scrolling`);
    }
    await p.done();
  } finally {
    await own.stop();
  }
});
