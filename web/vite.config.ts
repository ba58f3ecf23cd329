import { svelte } from "@sveltejs/vite-plugin-svelte";
import { loadEnv } from "vite";
import { defineConfig } from "vitest/config";

// While developing, what is no file of the dashboard goes to a server that runs: HOLDOUTD_URL=http://127.0.0.1:8080 npm run dev.
const server = loadEnv("", ".", "HOLDOUTD_").HOLDOUTD_URL ?? "http://127.0.0.1:8080";

export default defineConfig({
  plugins: [svelte()],
  build: {
    outDir: "../internal/dashboard/dist",
    emptyOutDir: true,
    sourcemap: false,
    target: "es2023",
    cssTarget: ["chrome123", "firefox128", "safari17.5"], // that know light-dark(), which is then left as it is
    modulePreload: { polyfill: false },
    cssCodeSplit: false,
    assetsInlineLimit: 0, // the policy of the page allows no data: addresses
    rolldownOptions: {
      output: {
        // No hashes: what is built is kept in the repository, and the server says with an ETag what has changed.
        entryFileNames: "assets/[name].js",
        chunkFileNames: "assets/[name].js",
        assetFileNames: "assets/[name][extname]",
        // What several pages use is one file with a name of its own: else the bundler names it after one of its parts, and another with each change.
        advancedChunks: { groups: [{ name: "shared", test: /src\/(lib|parts)\//, minShareCount: 2 }] },
      },
    },
  },
  server: { proxy: Object.fromEntries(["/v1", "/docs", "/openapi.json", "/version"].map((path) => [path, { target: server }])) },
  test: { include: ["src/**/*.test.ts"], environment: "node" },
});
