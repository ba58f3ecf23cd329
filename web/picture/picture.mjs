// Draws the page of one holdout as the README shows it: signs in to the server that HOLDOUTD_URL and HOLDOUTD_KEY name, and takes the first holdout.
import { startBrowser, openPage } from "../tests/harness.mjs";

const server = { url: process.env.HOLDOUTD_URL, key: process.env.HOLDOUTD_KEY };
const reply = await fetch(`${server.url}/v1/holdouts`, { headers: { Authorization: `Bearer ${server.key}` } });
const [holdout] = (await reply.json()).holdouts;
const browser = await startBrowser();
const p = await openPage(browser, server, {});
await p.open(`/holdouts/${holdout.id}`);
await p.page.locator(".frow").first().waitFor();
await p.page.setViewportSize({ width: 1280, height: 1240 });
await p.page.screenshot({ path: process.argv[2] });
await p.done();
await browser.close();
