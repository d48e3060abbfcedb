// A server on loopback that answers as the API of Notion does: its shapes, its bounds, its errors. It keeps pages in
// memory, remembers requests, and makes the trouble that `troubles` asks for, one for each request.

import { randomUUID } from "node:crypto";
import { createServer } from "node:http";

const VERSION = "2026-03-11";
const UUID = /^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$/;

const MESSAGES = {
  missing_version: [400, "Notion-Version header failed validation: Notion-Version header should be defined, instead was `undefined`."],
  invalid_json: [400, "Error parsing JSON body."],
  unauthorized: [401, "API token is invalid."],
  object_not_found: [404, "Could not find page with ID: {}. Make sure the relevant pages and databases are shared with your integration."],
  validation_error: [400, "body failed validation: {}"],
  invalid_request_url: [400, "Invalid request URL."],
  rate_limited: [429, "You have been rate limited. Please try again in a few minutes."],
};

class Refusal extends Error {
  constructor(code, about = "", headers = {}) {
    const [status, message] = MESSAGES[code];
    super(message.replace("{}", about));
    Object.assign(this, { status, code, headers });
  }
}

export class Service {
  constructor(token) {
    this.token = token;
    this.pages = new Map();
    this.seen = [];
    this.troubles = [];
    this.server = createServer((request, response) => void this.serve(request, response));
  }

  async start() {
    await new Promise((listens) => this.server.listen(0, "127.0.0.1", listens));
    this.address = `http://127.0.0.1:${this.server.address().port}`;
    return this;
  }

  stop() {
    this.server.closeAllConnections();
    this.server.close();
  }

  /** Puts a page there, with these blocks. */
  add(title, blocks = []) {
    const page = pageOf(title, randomUUID());
    this.pages.set(page.id, { page, blocks: blocks.map((block) => this.block(block)) });
    return page.id;
  }

  /** A block of the API's shape, of a type, a text, and blocks under it. */
  block([type, text, under = [], more = {}]) {
    const id = randomUUID();
    if (under.length) this.pages.set(id, { blocks: under.map((block) => this.block(block)) });
    const held = text === undefined ? {} : { rich_text: rich(text), color: "default" };
    return { object: "block", id, type, has_children: under.length > 0, in_trash: false, [type]: { ...held, ...more } };
  }

  async serve(request, response) {
    const body = await textOf(request);
    this.seen.push({ method: request.method, url: request.url, headers: request.headers, body });
    const trouble = this.troubles.shift();
    if (trouble) {
      trouble(response, request);
      return;
    }
    try {
      reply(response, 200, this.answer(request, body));
    } catch (problem) {
      if (!(problem instanceof Refusal)) throw problem;
      reply(response, problem.status, errorOf(problem), problem.headers);
    }
  }

  answer({ method, url, headers }, text) {
    if (headers.authorization !== `Bearer ${this.token}`) throw new Refusal("unauthorized");
    if (headers["notion-version"] !== VERSION) throw new Refusal("missing_version");
    const { pathname, searchParams } = new URL(url, this.address);
    const [, version, kind, id, more] = pathname.split("/");
    if (version !== "v1") throw new Refusal("invalid_request_url");
    switch (`${method} ${kind}${id ? "/" : ""}${more ?? ""}`) {
      case "POST search":
        return this.search(jsonOf(text));
      case "POST pages":
        return this.create(jsonOf(text));
      case "GET pages/":
        return this.find(id).page;
      case "PATCH pages/":
        return this.change(this.find(id).page, jsonOf(text));
      case "GET blocks/children":
        return list(this.find(id).blocks, Number(searchParams.get("page_size") ?? 100), searchParams.get("start_cursor"));
      default:
        throw new Refusal("invalid_request_url");
    }
  }

  find(id) {
    const dashed = id.replace(/-/g, "").replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
    const found = UUID.test(id) && this.pages.get(dashed);
    if (!found) throw new Refusal("object_not_found", id);
    return found;
  }

  search({ query, filter, page_size: size = 100, start_cursor: cursor }) {
    if (filter && (filter.property !== "object" || !["page", "data_source"].includes(filter.value))) {
      throw new Refusal("validation_error", "body.filter.value should be `\"page\"` or `\"data_source\"`.");
    }
    const all = [...this.pages.values()].flatMap(({ page }) => page ?? []);
    const found = all.filter((page) => page.properties.title.title[0].plain_text.toLowerCase().includes(query.toLowerCase()));
    return list(found, size, cursor);
  }

  create({ parent, properties, children = [] }) {
    if (!properties) throw new Refusal("validation_error", "body.properties should be defined, instead was `undefined`.");
    if (children.length > 100) {
      throw new Refusal("validation_error", `body.children.length should be ≤ \`100\`, instead was \`${children.length}\`.`);
    }
    this.find(parent.page_id);
    for (const { type, ...block } of children) {
      const long = block[type].rich_text?.find(({ text }) => text.content.length > 2000);
      if (long) throw new Refusal("validation_error", `body.children text.content.length should be ≤ \`2000\`, instead was \`${long.text.content.length}\`.`);
    }
    const page = pageOf(properties.title.title[0].text.content, randomUUID());
    const kept = children.map(({ type, ...block }) => {
      const texts = block[type].rich_text?.map(({ text }) => rich(text.content)[0]);
      return { object: "block", id: randomUUID(), type, has_children: false, [type]: { ...block[type], ...(texts && { rich_text: texts }) } };
    });
    this.pages.set(page.id, { page, blocks: kept });
    return page;
  }

  change(page, { in_trash: inTrash, ...rest }) {
    if (Object.keys(rest).length) {
      throw new Refusal("validation_error", `body.${Object.keys(rest)[0]} should be not present, instead was \`true\`.`);
    }
    return Object.assign(page, { in_trash: inTrash });
  }
}

// ---- trouble -----------------------------------------------------------------------------------------------------

/** 429, with the seconds that Notion says. */
export const busy = (seconds) => (response) =>
  reply(response, 429, errorOf(new Refusal("rate_limited")), { "Retry-After": String(seconds) });

/** Nothing at all, for as long as the client waits. */
export const silent = () => {};

/** A body without end. */
export const endless = (response) => {
  response.writeHead(200, { "Content-Type": "application/json" });
  const block = " ".repeat(1 << 16);
  const more = () => {
    while (!response.destroyed && response.write(block));
    if (!response.destroyed) response.once("drain", more);
  };
  more();
};

/** An error that repeats the token, as a careless service does. */
export const repeating = (response, request) =>
  reply(response, 400, { object: "error", status: 400, code: "invalid_request", message: `no: ${request.headers.authorization}` });

/** A page of something on the way to the service. */
export const gateway = (response) => {
  response.writeHead(502, { "Content-Type": "text/html" });
  response.end("<html>Bad Gateway</html>");
};

// ---- shapes ------------------------------------------------------------------------------------------------------

function list(all, size, cursor) {
  if (!(size >= 1 && size <= 100)) {
    throw new Refusal("validation_error", `body.page_size should be ≤ \`100\`, instead was \`${size}\`.`);
  }
  const from = cursor ? all.findIndex(({ id }) => id === cursor) : 0;
  if (from < 0) throw new Refusal("validation_error", "The start_cursor provided is invalid.");
  const next = all[from + size]?.id ?? null;
  return { object: "list", results: all.slice(from, from + size), next_cursor: next, has_more: next !== null };
}

function rich(text) {
  return [{ type: "text", text: { content: text, link: null }, plain_text: text, href: null }];
}

function pageOf(title, id) {
  const time = "2026-11-22T10:00:00.000Z";
  return {
    object: "page",
    id,
    created_time: time,
    last_edited_time: time,
    in_trash: false,
    parent: { type: "workspace", workspace: true },
    properties: { title: { id: "title", type: "title", title: rich(title) } },
    url: `https://www.notion.so/${id.replace(/-/g, "")}`,
    public_url: null,
  };
}

function errorOf({ status, code, message }) {
  return { object: "error", status, code, message, request_id: randomUUID() };
}

function reply(response, status, body, headers = {}) {
  response.writeHead(status, { "Content-Type": "application/json", ...headers });
  response.end(JSON.stringify(body));
}

function jsonOf(text) {
  try {
    return JSON.parse(text);
  } catch {
    throw new Refusal("invalid_json");
  }
}

async function textOf(stream) {
  const blocks = [];
  for await (const block of stream) blocks.push(block);
  return Buffer.concat(blocks).toString();
}
