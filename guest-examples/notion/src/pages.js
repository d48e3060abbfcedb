// The four tools. Each takes a Notion to ask and the call's arguments, and gives what its output schema says.

import { fromMarkdown, toMarkdown } from "./blocks.js";
import { Failure } from "./notion.js";

// Notion's own bound of one answer's list, and of the blocks of one request.
const LIST_MAX = 100;

// The most requests of one call. A page of 500 blocks without nesting takes 6.
const REQUESTS_MAX = 20;

// The depth to which blocks are read: a list in a list in a toggle.
const DEPTH_MAX = 3;

// The most of a page's text that is given, in UTF-16 units: some hundred printed pages, more than a model reads well.
const CONTENT_MAX = 200_000;

export async function searchPages(notion, { query, limit = 10 }) {
  const pages = [];
  let cursor;
  for (let number = 0; number < REQUESTS_MAX; number++) {
    const answer = await notion.ask("POST", "/v1/search", {
      query,
      filter: { property: "object", value: "page" },
      page_size: Math.min(limit - pages.length, LIST_MAX),
      ...(cursor && { start_cursor: cursor }),
    });
    // A title may match where the object is something else all the same, and a page may have been deleted meanwhile.
    const found = listOf(answer).filter((page) => page.object === "page" && !page.in_trash);
    pages.push(...found.slice(0, limit - pages.length).map(described));
    cursor = answer.has_more ? answer.next_cursor : undefined;
    if (!cursor || pages.length >= limit) break;
  }
  return { pages, more: Boolean(cursor) };
}

export async function getPage(notion, { page_id: id }) {
  const page = await notion.ask("GET", `/v1/pages/${plain(id)}`);
  const reading = { notion, requests: 1, whole: true };
  const blocks = await children(reading, plain(id), 0);
  const content = toMarkdown(blocks);
  // A character of two units is not cut in two.
  const cut = content.slice(0, CONTENT_MAX).replace(/[\uD800-\uDBFF]$/, "");
  return { ...described(page), content: cut, whole: reading.whole && cut === content };
}

export async function createPage(notion, { parent, title, content }) {
  const blocks = fromMarkdown(content);
  if (blocks.length > LIST_MAX) {
    throw new Failure(`the content is ${blocks.length} blocks, and one page is created with ${LIST_MAX} at most`, "invalid-input");
  }
  const page = await notion.ask("POST", "/v1/pages", {
    parent: { type: "page_id", page_id: plain(parent) },
    properties: { title: { title: [{ type: "text", text: { content: title } }] } },
    children: blocks,
  });
  return short(page);
}

export async function deletePage(notion, { page_id: id }) {
  return short(await notion.ask("PATCH", `/v1/pages/${plain(id)}`, { in_trash: true }));
}

/** The blocks of a block, each with its own in `children`, as far as the bounds of one call go. */
async function children(reading, id, depth) {
  const blocks = [];
  let cursor;
  do {
    if (reading.requests >= REQUESTS_MAX) {
      reading.whole = false;
      return blocks;
    }
    reading.requests += 1;
    const after = cursor ? `&start_cursor=${encodeURIComponent(cursor)}` : "";
    const answer = await reading.notion.ask("GET", `/v1/blocks/${id}/children?page_size=${LIST_MAX}${after}`);
    blocks.push(...listOf(answer));
    cursor = answer.has_more ? answer.next_cursor : undefined;
  } while (cursor);
  for (const block of blocks) {
    // A page under this one is another page; its title is enough.
    if (!block.has_children || block.type === "child_page" || block.type === "child_database") continue;
    if (depth + 1 >= DEPTH_MAX) reading.whole = false;
    else block.children = await children(reading, plain(block.id), depth + 1);
  }
  return blocks;
}

function listOf(answer) {
  if (answer?.object !== "list" || !Array.isArray(answer.results)) throw new Failure("Notion answered without a list");
  return answer.results;
}

/** An id as a part of a path: nothing but hexadecimal digits and hyphens gets there. */
function plain(id) {
  if (!/^[0-9a-fA-F-]{32,36}$/.test(id ?? "")) throw new Failure(`${JSON.stringify(id)} is not a Notion ID`, "invalid-input");
  return id.toLowerCase();
}

function short(page) {
  const { page_id, title, url } = described(page);
  return { page_id, title, url, in_trash: Boolean(page.in_trash) };
}

function described(page) {
  if (page?.object !== "page") throw new Failure("Notion answered without a page");
  const property = Object.values(page.properties ?? {}).find(({ type }) => type === "title");
  const title = (property?.title ?? []).map(({ plain_text: text }) => text ?? "").join("");
  return { page_id: page.id, title, url: page.url ?? "", last_edited: page.last_edited_time ?? "" };
}
