// The answers of the tools, run natively against the server of service.js: no component is needed for it.

import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";

import { fromMarkdown, toMarkdown } from "../src/blocks.js";
import { Notion } from "../src/notion.js";
import { createPage, deletePage, getPage, searchPages } from "../src/pages.js";
import { busy, gateway, Service } from "./service.js";

const TOKEN = "ntn_test";
let service, waited;

before(async () => {
  service = await new Service(TOKEN).start();
});
after(() => service.stop());
beforeEach(() => {
  service.seen = [];
  service.troubles = [];
  waited = [];
});

/** A client whose requests carry the token, as those of a component do once the host has added it; waiting is noted. */
function notion(token = TOKEN) {
  const clock = { time: 0 };
  return new Notion({
    address: `${service.address}/`,
    fetch: (url, request) => fetch(url, { ...request, headers: { ...request.headers, Authorization: `Bearer ${token}` } }),
    sleep: async (milliseconds) => {
      waited.push(milliseconds);
      clock.time += milliseconds;
    },
    now: () => clock.time,
  });
}

const refusal = (message, tag = "failed") => (problem) => {
  assert.match(problem.message, message);
  assert.equal(problem.tag, tag);
  return true;
};

test("a search goes on page by page, up to its limit", async () => {
  const ids = [...Array(230).keys()].map((number) => service.add(`Tea ${number}`));
  service.add("Coffee");
  const first = await searchPages(notion(), { query: "tea" });
  assert.deepEqual(first.pages.map(({ page_id }) => page_id), ids.slice(0, 10));
  assert.deepEqual(first.pages[0].title, "Tea 0");
  assert.equal(first.more, true);
  const hundred = await searchPages(notion(), { query: "tea", limit: 100 });
  assert.equal(hundred.pages.length, 100);
  const coffee = await searchPages(notion(), { query: "coff", limit: 100 });
  assert.deepEqual([coffee.pages.length, coffee.more], [1, false]);
});

test("what a search leaves out is made up for from the next page", async () => {
  const ids = [...Array(6).keys()].map((number) => service.add(`Milk ${number}`));
  for (const id of ids.slice(0, 3)) service.pages.get(id).page.in_trash = true;
  const { pages, more } = await searchPages(notion(), { query: "milk", limit: 3 });
  assert.deepEqual(pages.map(({ page_id }) => page_id), ids.slice(3));
  assert.equal(more, false);
  assert.equal(service.seen.length, 2);
});

test("a page is its blocks as Markdown, over several pages of answers", async () => {
  const many = [...Array(150).keys()].map((number) => ["paragraph", `line ${number}`]);
  const id = service.add("Long", [["heading_1", "Top"], ...many, ["bulleted_list_item", "a", [["to_do", "b", [], { checked: true }]]]]);
  const page = await getPage(notion(), { page_id: id.replace(/-/g, "") });
  const lines = page.content.split("\n");
  assert.deepEqual([lines[0], lines[1], lines[150], lines[151], lines[152]], ["# Top", "line 0", "line 149", "- a", "  - [x] b"]);
  assert.equal(page.whole, true);
});

test("a page that is too deep or too long is cut, and says so", async () => {
  const deep = service.add("Deep", [["toggle", "1", [["toggle", "2", [["toggle", "3", [["toggle", "4"]]]]]]]]);
  const page = await getPage(notion(), { page_id: deep });
  assert.deepEqual([page.content, page.whole], ["1\n  2\n    3", false]);
  const wide = service.add("Wide", [...Array(40).keys()].map((number) => ["toggle", `${number}`, [["paragraph", "x"]]]));
  service.seen = [];
  assert.equal((await getPage(notion(), { page_id: wide })).whole, false);
  assert.equal(service.seen.length, 20);
});

test("a page is created with its blocks, and read back", async () => {
  const parent = service.add("Parent");
  const content = "# A\n\ntext\n- one\n- [x] done\n- [ ] not\n1. first\n> said\n---\n```js\nlet a;\n\n```\n" + "é".repeat(4500);
  const made = await createPage(notion(), { parent, title: "New", content });
  assert.deepEqual([made.title, made.in_trash], ["New", false]);
  const read = await getPage(notion(), { page_id: made.page_id });
  assert.equal(read.content, content.replace("\n\ntext", "\ntext").replace("```js", "```"));
});

test("more blocks than one request takes are refused before anything is sent", async () => {
  const content = "line\n".repeat(101);
  await assert.rejects(
    createPage(notion(), { parent: service.add("Parent"), title: "New", content }),
    refusal(/^the content is 101 blocks, and one page is created with 100 at most$/, "invalid-input"),
  );
  assert.equal(service.seen.length, 0);
});

test("a deletion puts the page into the trash, and nothing else is changed", async () => {
  const id = service.add("Old");
  assert.deepEqual((await deletePage(notion(), { page_id: id })).in_trash, true);
  assert.deepEqual([service.seen[0].method, service.seen[0].body], ["PATCH", '{"in_trash":true}']);
});

test("an id is never more than an id", async () => {
  for (const id of ["../search", "0".repeat(33) + "/../..", "", undefined, "g".repeat(32)]) {
    await assert.rejects(deletePage(notion(), { page_id: id }), refusal(/is not a Notion ID$/, "invalid-input"));
  }
  assert.equal(service.seen.length, 0);
});

test("it waits as long as Notion says, and goes on", async () => {
  const id = service.add("Busy");
  service.troubles = [busy(2), busy(3)];
  assert.equal((await getPage(notion(), { page_id: id })).title, "Busy");
  assert.deepEqual(waited, [2000, 3000]);
});

test("what is too long to wait for is said, and how long it would be", async () => {
  const id = service.add("Busy");
  service.troubles = [busy(60)];
  await assert.rejects(getPage(notion(), { page_id: id }), refusal(/^Notion takes no more requests for now; try again in 60 s$/));
  service.troubles = [busy(9), busy(9)];
  await assert.rejects(getPage(notion(), { page_id: id }), refusal(/try again in 9 s$/));
  service.troubles = [busy(1), busy(1), busy(1), busy(1)];
  await assert.rejects(getPage(notion(), { page_id: id }), refusal(/try again in 1 s$/));
  assert.deepEqual(waited, [9000, 1000, 1000, 1000]);
});

test("errors are Notion's own words", async () => {
  const missing = "00000000-0000-0000-0000-000000000000";
  await assert.rejects(
    getPage(notion(), { page_id: missing }),
    refusal(/^Notion refused it \(object_not_found\): Could not find page with ID: 00000000-.*shared with your integration\.$/),
  );
  await assert.rejects(searchPages(notion("wrong"), { query: "tea" }), refusal(/\(unauthorized\): API token is invalid\.$/));
  await assert.rejects(
    searchPages(notion(), { query: "tea", limit: 0 }),
    refusal(/\(validation_error\): body failed validation: body\.page_size should be/, "invalid-input"),
  );
  service.troubles = [gateway];
  await assert.rejects(searchPages(notion(), { query: "tea" }), refusal(/^Notion refused it \(status 502\)$/));
});

test("blocks of other types are named, and text keeps its links", () => {
  const text = (plain, href = null) => ({ type: "text", plain_text: plain, href });
  assert.equal(
    toMarkdown([
      { type: "paragraph", paragraph: { rich_text: [text("see "), text("this", "https://a.example")] } },
      { type: "code", code: { rich_text: [text("x\ny")], language: "rust" } },
      { type: "child_page", child_page: { title: "Under" } },
      { type: "table" },
      { type: "callout", callout: { rich_text: [text("note")] } },
    ]),
    "see [this](https://a.example)\n```rust\nx\ny\n```\n[page: Under]\n[table]\nnote",
  );
  assert.equal(fromMarkdown("```\nnever closed").length, 1);
});
