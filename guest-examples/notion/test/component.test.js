// The component in its sandbox, served by toolcell with the manifest beside it, against the server of service.js: what
// the host adds, refuses and asks. TOOLCELL_BIN names the binary; the first start compiles the component.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { copyFile, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, beforeEach, test } from "node:test";
import { fileURLToPath } from "node:url";

import { busy, endless, repeating, Service, silent } from "./service.js";

const TOKEN = "ntn_s3cr3t8d1f7c2a94";
const at = (path) => fileURLToPath(new URL(path, import.meta.url));

// Compiling an engine of JavaScript takes minutes on a slow or busy machine.
const START_MAX = 900_000;

/** A running `toolcell serve`, and a client that can ask its person. */
class Host {
  constructor(folder) {
    const binary = process.env.TOOLCELL_BIN ?? at("../../../target/release/toolcell");
    const environment = { ...process.env, NOTION_TOKEN: TOKEN };
    const command = ["serve", "--manifest", join(folder, "toolcell.toml"), "--audit", join(folder, "audit.jsonl")];
    this.folder = folder;
    this.process = spawn(binary, command, { env: environment, stdio: ["pipe", "pipe", "pipe"] });
    this.said = "";
    this.process.stderr.on("data", (data) => (this.said += data));
    this.ended = new Promise((ends) => this.process.on("close", ends));
    this.waiting = new Map();
    this.asked = [];
    this.decision = "decline";
    createInterface({ input: this.process.stdout }).on("line", (line) => this.hear(JSON.parse(line)));
  }

  hear(message) {
    if (message.method === "elicitation/create") {
      this.asked.push(message.params.message);
      this.send({ id: message.id, result: { action: this.decision, content: {} } });
    } else if (message.id !== undefined && !message.method) {
      this.waiting.get(message.id)?.(message);
    }
  }

  send(message) {
    this.process.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  }

  async request(method, params) {
    const id = this.waiting.size + 1;
    const answered = new Promise((answer) => this.waiting.set(id, answer));
    this.send({ id, method, params });
    const ended = this.ended.then(() => assert.fail(`the server ended: ${this.said}`));
    return Promise.race([answered, ended]);
  }

  async start() {
    const clientInfo = { name: "test", version: "1" };
    await this.request("initialize", { protocolVersion: "2025-11-25", capabilities: { elicitation: {} }, clientInfo });
    this.send({ method: "notifications/initialized" });
    return this;
  }

  /** The result of a call: its structured content, or the text of its error. */
  async call(name, args) {
    const { result, error } = await this.request("tools/call", { name, arguments: args });
    if (error) return { error: error.message };
    const text = result.content.map((piece) => piece.text).join("\n");
    assert.ok(!JSON.stringify(result).includes(TOKEN), "the token is in an answer");
    return result.isError ? { error: text } : result.structuredContent;
  }

  async stop() {
    this.process.stdin.end();
    await this.ended;
    return this.said + (await readFile(join(this.folder, "audit.jsonl"), "utf-8"));
  }
}

let service, folder, host;

/** The manifest of this folder, with the service of the test in the place of Notion, and a shorter deadline. */
async function manifest() {
  const text = await readFile(at("../toolcell.toml"), "utf-8");
  const address = service.address.replace("http://", "");
  return text
    .replaceAll("https://api.notion.com", service.address)
    .replace("[components.notion.network]\n", `[components.notion.env]\nNOTION_URL = "${service.address}"\n\n[components.notion.network]\nprivate = ["${address}"]\n`)
    .replace('deadline = "30s" ', 'deadline = "8s" ')
    .replace('http_time = "10s"', 'http_time = "2s"');
}

before(async () => {
  service = await new Service(TOKEN).start();
  folder = await mkdtemp(join(tmpdir(), "notion-"));
  await writeFile(join(folder, "toolcell.toml"), await manifest());
  await copyFile(at("../notion.wasm"), join(folder, "notion.wasm"));
  host = await new Host(folder).start();
}, { timeout: START_MAX });

after(async () => {
  const said = await host.stop();
  service.stop();
  await rm(folder, { recursive: true });
  assert.ok(!said.includes(TOKEN), "the token is in the log or the audit");
});

beforeEach(() => {
  service.seen = [];
  service.troubles = [];
  host.asked = [];
});

test("the tools are what they say, within bounds", async () => {
  const { result } = await host.request("tools/list", {});
  const tools = Object.fromEntries(result.tools.map((tool) => [tool.name, tool]));
  assert.deepEqual(Object.keys(tools), ["search_pages", "get_page", "create_page", "delete_page"]);
  const { query, limit } = tools.search_pages.inputSchema.properties;
  assert.deepEqual([query.minLength, limit.minimum, limit.maximum, limit.default], [2, 1, 100, 10]);
  assert.equal(tools.delete_page.annotations.destructiveHint, true);
  assert.equal(tools.search_pages.annotations.readOnlyHint, true);
  for (const args of [{ query: "a" }, { query: "ab", limit: 0 }, { query: "ab", limit: 101 }, {}]) {
    const { error } = await host.call("search_pages", args);
    assert.match(error, /query|limit/);
  }
  assert.equal(service.seen.length, 0);
});

test("the host adds the token, and the tools work", async () => {
  const ids = [...Array(120).keys()].map((number) => service.add(`Plan ${number}`));
  const found = await host.call("search_pages", { query: "plan", limit: 100 });
  assert.deepEqual([found.pages.length, found.more, found.pages[99].page_id], [100, true, ids[99]]);
  const made = await host.call("create_page", { parent: ids[0], title: "Größe", content: "# A\n- b\n" });
  const read = await host.call("get_page", { page_id: made.page_id });
  assert.deepEqual([read.title, read.content, read.whole], ["Größe", "# A\n- b", true]);
  for (const { headers } of service.seen) assert.equal(headers.authorization, `Bearer ${TOKEN}`);
});

test("a page is deleted once a person agreed, and not before", async () => {
  const id = service.add("Old");
  host.decision = "decline";
  assert.match((await host.call("delete_page", { page_id: id })).error, /declined/);
  assert.deepEqual([service.seen.length, service.pages.get(id).page.in_trash], [0, false]);
  host.decision = "accept";
  assert.equal((await host.call("delete_page", { page_id: id })).in_trash, true);
  assert.equal(service.pages.get(id).page.in_trash, true);
  assert.equal(host.asked.length, 2);
  assert.ok(host.asked.every((message) => message.includes("delete_page") && message.includes(id)), host.asked);
});

test("it waits where Notion is busy, and gives up where that takes too long", async () => {
  const id = service.add("Busy");
  service.troubles = [busy(1)];
  const before = Date.now();
  assert.equal((await host.call("get_page", { page_id: id })).title, "Busy");
  assert.ok(Date.now() - before >= 1000);
  service.troubles = [busy(60)];
  assert.match((await host.call("get_page", { page_id: id })).error, /^Notion takes no more requests for now; try again in 60 s/);
});

test("errors are Notion's own words, without the token", async () => {
  const missing = await host.call("get_page", { page_id: "0".repeat(32) });
  assert.match(missing.error, /object_not_found\): Could not find page/);
  service.troubles = [repeating];
  const { error } = await host.call("search_pages", { query: "tea" });
  assert.match(error, /\(invalid_request\): no: Bearer \[redacted:NOTION_TOKEN\]/);
});

test("a long page comes up to a bound", async () => {
  const blocks = (count) => [...Array(count).keys()].map((number) => ["paragraph", `${number} ${"é".repeat(1_990)}`]);
  const whole = await host.call("get_page", { page_id: service.add("Long", blocks(95)) });
  assert.deepEqual([whole.error, whole.whole, whole.content?.split("\n").length], [undefined, true, 95]);
  const cut = await host.call("get_page", { page_id: service.add("Longer", blocks(700)) });
  assert.deepEqual([cut.error, cut.whole, cut.content?.length], [undefined, false, 200_000]);
});

test("a service that is silent or has no end is given up", async () => {
  service.troubles = [silent];
  assert.match((await host.call("search_pages", { query: "tea" })).error, /^Notion cannot be reached/);
  service.troubles = [endless];
  assert.match((await host.call("search_pages", { query: "tea" })).error, /^Notion's answer is larger than 4 MiB/);
  assert.equal((await host.call("search_pages", { query: "no such page" })).more, false);
});
