// Builds glossary.wasm: one file of JavaScript (build/glossary.js) out of this package, then a component out of that.

import { cp, mkdir, readdir, rename, rm, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

import { build } from "esbuild";
import { componentize } from "@bytecodealliance/componentize-js";

const at = (path) => fileURLToPath(new URL(path, import.meta.url));
// The world, with the contract and the packages of WASI it stands on. In a repository of your own, `toolcell new`
// puts the contract beside the tool.
await rm(at("build"), { recursive: true, force: true });
await mkdir(at("build/wit/deps/toolcell"), { recursive: true });
await cp(at("wit/glossary.wit"), at("build/wit/glossary.wit"));
for (const name of await readdir(at("../../wit"))) {
  if (name.endsWith(".wit")) await cp(at(`../../wit/${name}`), at(`build/wit/deps/toolcell/${name}`));
}
for (const name of ["cli", "clocks", "filesystem", "io", "random", "sockets"]) {
  await cp(at(`../../wit/deps/${name}.wit`), at(`build/wit/deps/${name}.wit`));
}

await build({
  entryPoints: [at("src/tool.js")],
  outfile: at("build/glossary.js"),
  bundle: true,
  format: "esm",
  external: ["toolcell:*", "wasi:*"],
  minify: true,
  logLevel: "warning",
});

// It computes: no HTTP, timers or randomness.
const disableFeatures = ["random", "fetch-event", "http", "clocks"];
const { component } = await componentize({
  sourcePath: at("build/glossary.js"),
  witPath: at("build/wit"),
  worldName: "glossary",
  disableFeatures,
});
// Renamed into place: a host that watches the file never reads half of it.
await writeFile(at("glossary.wasm.new"), component);
await rename(at("glossary.wasm.new"), at("glossary.wasm"));
