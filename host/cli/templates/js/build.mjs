// Builds build/tool.wasm: one file of JavaScript out of src/ and the packages it imports, then a component out of that.

import { mkdir, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

import { build } from "esbuild";
import { componentize } from "@bytecodealliance/componentize-js";

import { places } from "./places.mjs";

const at = (path) => fileURLToPath(new URL(path, import.meta.url));
await mkdir(at("build"), { recursive: true });
const { outputFiles: [map, script] } = await build({
  entryPoints: [at("src/tool.{{js}}")],
  outfile: at("build/tool.js"),
  bundle: true,
  format: "esm",
  external: ["toolcell:*", "wasi:*"],
  sourcemap: "external",
  write: false,
  logLevel: "warning",
});
await writeFile(at("build/tool.js"), script.text + places(map.text));

// Parts of the engine that are left out: take "http" away for `fetch`, "clocks" for dates and timers, "random" for
// randomness. What the tool may reach with them is up to the manifest.
const disableFeatures = [{{left_out}}];
const { component } = await componentize({
  sourcePath: at("build/tool.js"),
  witPath: at("wit"),
  worldName: "{{world}}",
  disableFeatures,
});
await writeFile(at("build/tool.wasm"), component);
