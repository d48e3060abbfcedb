// Builds markdown.wasm: one file of JavaScript (build/markdown.js) out of this package and its dependencies, then a
// component out of that.

import { mkdir, rename, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

import { build } from "esbuild";
import { componentize } from "@bytecodealliance/componentize-js";

const at = (path) => fileURLToPath(new URL(path, import.meta.url));
await mkdir(at("build"), { recursive: true });
await build({
  entryPoints: [at("src/markdown.js")],
  outfile: at("build/markdown.js"),
  bundle: true,
  format: "esm",
  minify: true,
  logLevel: "warning",
});

// What the engine would import for parts of JavaScript that this tool does not use. What is not imported need not be
// trusted; `stdio` stays, so that an exception says in the host's log what it was.
const disableFeatures = ["random", "clocks", "http", "fetch-event"];
const { component } = await componentize({
  sourcePath: at("build/markdown.js"),
  witPath: at("wit"),
  worldName: "markdown",
  disableFeatures,
});
// Renamed into place: a host that watches the file never reads half of it.
await writeFile(at("markdown.wasm.new"), component);
await rename(at("markdown.wasm.new"), at("markdown.wasm"));
