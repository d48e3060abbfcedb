// Builds report_js.wasm: one file of JavaScript out of this package, then a component out of that.

import { cp, mkdir, readdir, rename, rm, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

import { componentize } from "componentize-qjs";
import { build } from "esbuild";

const at = (path) => fileURLToPath(new URL(path, import.meta.url));
// The world, with the contract and the packages of WASI it stands on. In a repository of your own, `toolcell new`
// puts the contract beside the tool.
await rm(at("build"), { recursive: true, force: true });
await mkdir(at("build/wit/deps/toolcell"), { recursive: true });
await cp(at("wit/report.wit"), at("build/wit/report.wit"));
for (const name of await readdir(at("../../wit"))) {
  if (name.endsWith(".wit")) await cp(at(`../../wit/${name}`), at(`build/wit/deps/toolcell/${name}`));
}
for (const name of ["cli", "clocks", "filesystem", "io", "random", "sockets"]) {
  await cp(at(`../../wit/deps/${name}.wit`), at(`build/wit/deps/${name}.wit`));
}

const { outputFiles: [script] } = await build({
  entryPoints: [at("src/tool.js")],
  outfile: at("build/report.js"),
  bundle: true,
  format: "esm",
  external: ["toolcell:*", "wasi:*"],
  write: false,
  logLevel: "warning",
});

// With `sync` the component runs on every host of WASI 0.2.
const { component } = await componentize({ jsSource: script.text, witPath: at("build/wit"), world: "report", sync: true });
// Renamed into place: a host that watches the file never reads half of it.
await writeFile(at("report_js.wasm.new"), component);
await rename(at("report_js.wasm.new"), at("report_js.wasm"));
