// Keys: made, shown once, used, revoked; and what the form says to what is wrong.
import assert from "node:assert/strict";
import { generateKeyPairSync, sign } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { inspect, openPage, picture, startBrowser, startServer, themes } from "./harness.mjs";

let server, browser;
before(async () => ([server, browser] = await Promise.all([startServer(), startBrowser()])));
after(async () => {
  await browser?.close();
  await server?.stop();
});

test("a key is made, shown once, used and revoked", async () => {
  const p = await openPage(browser, server, { width: 390, permissions: ["clipboard-read", "clipboard-write"] });
  const { page } = p;
  await p.open("/keys");
  await page.getByText("Only your key exists.").waitFor();
  await page.getByRole("button", { name: "New key" }).click();
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByText("A key needs a name").waitFor();
  assert.equal(await page.evaluate(() => document.activeElement.id), "name", "focus goes to the field that is wrong");
  await inspect(page, "keys-error");
  await picture(page, "keys-error-390");
  await page.getByLabel("Name").fill("nightly-run");
  await page.getByRole("button", { name: "Create" }).click();
  const secret = await page.locator(".secret").innerText();
  assert.match(secret, /^hk_/);
  await page.getByRole("button", { name: "Copy" }).click();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), secret);
  await inspect(page, "keys-made");
  await picture(page, "keys-made-390");

  const theirs = await openPage(browser, server, { key: secret });
  await theirs.open("/keys");
  await theirs.page.getByText("Keys are made by an admin").waitFor();
  await inspect(theirs.page, "keys of an analyst");

  await page.reload();
  await page.getByText("nightly-run").first().waitFor();
  assert.equal(await page.getByText(secret).count(), 0, "the secret is shown once");
  await page.getByRole("row").filter({ hasText: "nightly-run" }).getByText("made by admin").waitFor();
  await page.getByRole("button", { name: "Revoke nightly-run" }).click();
  await inspect(page, "keys-revoke");
  await picture(page, "keys-revoke-390");
  await page.getByRole("button", { name: "Revoke it" }).click();
  await page.getByText("revoked", { exact: true }).waitFor();

  // It is over for them with the next thing they ask for, without another word from them.
  theirs.expect(/status of 401/);
  await theirs.page.goto("/holdouts");
  await theirs.page.getByRole("heading", { name: "Sign in" }).waitFor();
  await theirs.done();
  await p.done();
});

test("signing in: a wrong key, a revoked one, the right one; signing out", async () => {
  const revoked = await server.call("POST", "/v1/keys", { name: "gone", scope: "analyst" });
  await server.call("DELETE", `/v1/keys/${revoked.id}`);
  for (const theme of themes) {
    const p = await openPage(browser, server, { key: null, theme });
    const { page } = p;
    await p.open("/keys");
    const field = page.getByLabel("Key", { exact: true });
    await field.fill("secret");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("Keys begin with hk_").waitFor();
    p.expect(/status of 401/);
    await field.fill(revoked.secret);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("alert").filter({ hasText: "revoked" }).waitFor();
    await inspect(page, "signin-error");
    await picture(page, `signin-error-${theme}`);
    await field.fill(server.key);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Keys" }).waitFor(); // the page that was asked for
    assert.ok(!page.url().includes("hk_"));
    assert.deepEqual(await page.evaluate(() => [document.cookie, localStorage.length + sessionStorage.length > 0 ? JSON.stringify({ ...localStorage, ...sessionStorage }).includes("hk_") : false]), ["", false]);
    await p.open("/more");
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    await page.goto("/keys");
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    await p.done();
  }
});

test("signing in with a token of an issuer: before and after an admin has bound its subject", async () => {
  const dir = mkdtempSync(join(tmpdir(), "holdoutd-issuer-"));
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  writeFileSync(join(dir, "keys.json"), JSON.stringify({ keys: [{ ...publicKey.export({ format: "jwk" }), kid: "one" }] }));
  const issuer = "https://issuer.example";
  const of = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const content = `${of({ alg: "ES256", kid: "one" })}.${of({ iss: issuer, aud: "holdoutd", sub: "ann@acme", exp: Math.floor(Date.now() / 1000) + 3600 })}`;
  const token = `${content}.${sign("sha256", Buffer.from(content), { key: privateKey, dsaEncoding: "ieee-p1363" }).toString("base64url")}`;
  const other = await startServer(join(dir, "data"), "127.0.0.1:0", "--oidc-issuer", issuer, "--oidc-audience", "holdoutd", "--oidc-jwks", join(dir, "keys.json"));
  try {
    const p = await openPage(browser, other, { key: null, width: 390 });
    const { page } = p;
    await p.open("/keys");
    const field = page.getByLabel("Key", { exact: true });
    const send = page.getByRole("button", { name: "Sign in" });
    await field.fill("a.b");
    await send.click();
    await page.getByText("neither a key nor a token").waitFor();
    p.expect(/status of 401/);
    await field.fill(token);
    await send.click();
    await page.getByRole("alert").filter({ hasText: "an admin must bind one" }).waitFor();
    await inspect(page, "signin-token-unbound");
    await other.call("POST", "/v1/keys", { name: "Ann", scope: "admin", oidc_subject: "ann@acme" });
    await send.click();
    await page.getByRole("heading", { name: "Keys" }).waitFor();
    await page.getByText("tokens of ann@acme").waitFor();
    await inspect(page, "keys-bound");
    await picture(page, "keys-bound-390");
    const kept = await page.evaluate(() => JSON.stringify([location.href, document.cookie, { ...localStorage }, { ...sessionStorage }]));
    for (const piece of token.split(".")) {
      assert.ok(!kept.includes(piece), "the page keeps no piece of the token");
      assert.ok(!other.log.join("\n").includes(piece), "the log has no piece of the token");
    }
    await p.done();
  } finally {
    await other.stop();
    rmSync(dir, { recursive: true, force: true });
  }
});

test("a key with a grant: made in one go, seen spending, revoked", async () => {
  const { id } = await server.upload({ name: "flights", holdout: 0.5, questions: 400, mechanism: "gaussian" });
  const p = await openPage(browser, server, { permissions: ["clipboard-read", "clipboard-write"] });
  const { page } = p;
  await p.open("/keys");
  await page.getByRole("button", { name: "New key" }).click();
  await page.getByLabel("Name").fill("run-7");
  await page.getByText("asks what a grant gives it").click();
  await page.getByRole("button", { name: "Create" }).click();
  const secret = await page.locator(".secret").innerText();
  await page.getByRole("form", { name: "New grant" }).waitFor();
  assert.equal(await page.getByLabel("Key", { exact: true }).locator("option:checked").innerText(), "run-7");
  await page.getByText("of 400 left").waitFor();
  for (const [text, says] of [["", "Say how many questions"], ["1.5", "Say how many questions"]]) {
    await page.getByLabel("Questions").fill(text);
    await page.getByRole("button", { name: "Grant", exact: true }).click();
    await page.getByRole("alert").filter({ hasText: says }).waitFor();
  }
  await inspect(page, "grant-error");
  await picture(page, "grant-error");
  await page.getByLabel("Questions").fill("12");
  await page.getByText("values alone").click();
  await page.getByRole("button", { name: "Grant", exact: true }).click();
  await page.getByText("0 of 12").waitFor();
  await page.getByRole("button", { name: "New grant" }).click();
  await page.getByLabel("Questions").fill("3");
  p.expect(/status of 409/);
  await page.getByRole("button", { name: "Grant", exact: true }).click();
  await page.getByText("The key has a grant of this holdout already").waitFor();
  await page.getByRole("button", { name: "Cancel" }).click();
  await server.call("POST", `/v1/holdouts/${id}/queries`, { type: "fraction", of: "delay > 15" }, secret);
  await page.reload();
  await page.getByText("1 of 12").waitFor();
  await inspect(page, "grants-list");
  await picture(page, "grants-list");
  await page.getByRole("button", { name: "Revoke the grant of run-7" }).click();
  await page.getByRole("button", { name: "Revoke it" }).click();
  await page.getByText("revoked", { exact: true }).last().waitFor();
  await assert.rejects(server.call("POST", `/v1/holdouts/${id}/queries`, { type: "fraction", of: "delay > 30" }, secret));
  await p.done();
});
