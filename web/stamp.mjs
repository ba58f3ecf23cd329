// Writes the digests of what was built and of what it was built from, by which `go test ./internal/dashboard` sees, without node, that the one
// is of the other. `npm run build` runs it.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";

const root = new URL("../", import.meta.url);
const from = ["web/src", "web/public", "web/index.html", "web/package.json", "web/package-lock.json", "web/svelte.config.js", "web/tsconfig.json", "web/vite.config.ts"];

function files(name) {
  let entries;
  try {
    entries = readdirSync(new URL(`${name}/`, root), { withFileTypes: true });
  } catch (error) {
    if (error.code === "ENOTDIR") return [name];
    throw error;
  }
  return entries.flatMap((e) => (e.isDirectory() ? files(`${name}/${e.name}`) : [`${name}/${e.name}`]));
}

const names = [...from, "internal/dashboard/dist"].flatMap(files).filter((name) => !name.endsWith(".test.ts"));
const lines = names.sort().map((name) => `${createHash("sha256").update(readFileSync(new URL(name, root))).digest("hex")}  ${name}\n`);
writeFileSync(new URL("internal/dashboard/build.sum", root), lines.join(""));
