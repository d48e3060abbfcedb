// Builds build/tool.wasm: one file of JavaScript out of src/ and the packages it imports, then a component out of that.

import { mkdir, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

import { componentize } from "componentize-qjs";
import { build } from "esbuild";

import { places } from "./places.mjs";

const at = (path) => fileURLToPath(new URL(path, import.meta.url));
await mkdir(at("build"), { recursive: true });
const { outputFiles: [map, script] } = await build({
  entryPoints: [at("src/tool.{{js}}")],
  inject: [at("src/web.js")],
  outfile: at("build/tool.js"),
  bundle: true,
  format: "esm",
  external: ["toolcell:*", "wasi:*"],
  sourcemap: "external",
  write: false,
  logLevel: "warning",
});

// With `sync` the component runs on every host of WASI 0.2; without it, its imports may be awaited.
const { component } = await componentize({
  jsSource: script.text + places(map.text),
  witPath: at("wit"),
  world: "{{world}}",
  sync: true,
});
await writeFile(at("build/tool.wasm"), component);
