import { defineConfig } from "vite";

export default defineConfig({
  // The address of the page has a token in it, so that all names are relative.
  base: "./",
  build: {
    outDir: "dist",
    target: "es2022",
    // Nothing in the page as data: its rules forbid scripts and styles that are no files.
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 1200,
    modulePreload: { polyfill: false },
  },
});
