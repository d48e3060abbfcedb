// The API of Notion: one request, its errors in words, and waiting where it asks for that. Knows nothing of tools, and
// no token: the host adds it to the requests.

// https://developers.notion.com/reference/versioning; since this one a page is deleted by `in_trash` alone.
const VERSION = "2026-03-11";
const ADDRESS = "https://api.notion.com";

// The longest that one call waits for Notion to take requests again, in milliseconds. With the requests themselves it
// has to fit into the manifest's deadline, 30 s.
const WAIT_MAX = 15_000;

// The number of times one request is made, first time included.
const TRIES_MAX = 4;

// The most of an error's message that is repeated, in characters.
const MESSAGE_MAX = 500;

// The most of an answer that is read, in bytes. A hundred full blocks take one or two MiB.
const ANSWER_MAX = 4 << 20;

// Out of requests for now: of the integration or the workspace, and of the service as a whole.
const BUSY = [429, 529];

/** Why a call gave nothing: a `failure` of wit/types.wit. */
export class Failure extends Error {
  constructor(message, tag = "failed") {
    super(message);
    this.tag = tag;
  }
}

export class Notion {
  constructor({ address, fetch, sleep, now }) {
    Object.assign(this, { address: (address || ADDRESS).replace(/\/+$/, ""), fetch, sleep });
    this.left = WAIT_MAX;
    this.now = now;
  }

  /** Asks, and gives the JSON of the answer. */
  async ask(method, path, body) {
    for (let number = 1; ; number++) {
      const response = await this.send(method, path, body);
      const text = await textOf(response);
      if (response.status === 200) return parsed(text);
      if (!BUSY.includes(response.status)) throw refused(response.status, text);
      await this.wait(response, number);
    }
  }

  async send(method, path, body) {
    const headers = { "Notion-Version": VERSION, Accept: "application/json" };
    const request = { method, headers };
    if (body !== undefined) {
      headers["Content-Type"] = "application/json";
      request.body = JSON.stringify(body);
    }
    try {
      return await this.fetch(this.address + path, request);
    } catch (problem) {
      throw new Failure(`Notion cannot be reached: ${problem.message}`);
    }
  }

  /** Waits as long as Notion says, or says that it would be too long. */
  async wait(response, number) {
    const said = response.headers.get("Retry-After") ?? "";
    const seconds = /^\d{1,6}$/.test(said) ? Number(said) : 1;
    const milliseconds = seconds * 1000;
    if (number >= TRIES_MAX || milliseconds > this.left) {
      throw new Failure(`Notion takes no more requests for now; try again in ${seconds} s`);
    }
    const before = this.now();
    await this.sleep(milliseconds);
    this.left -= Math.max(milliseconds, this.now() - before);
  }
}

/** The text of an answer. It is read block by block: what has no end is given up at its bound. */
async function textOf(response) {
  const decoder = new TextDecoder();
  let [text, left] = ["", ANSWER_MAX];
  try {
    const reader = response.body?.getReader();
    for (let block = await reader?.read(); block && !block.done; block = await reader.read()) {
      left -= block.value.byteLength;
      if (left < 0) break;
      text += decoder.decode(block.value, { stream: true });
    }
  } catch (problem) {
    throw new Failure(`Notion's answer broke off: ${problem.message}`);
  }
  if (left < 0) throw new Failure(`Notion's answer is larger than ${ANSWER_MAX >> 20} MiB`);
  return text + decoder.decode();
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    throw new Failure("Notion answered with something that is not JSON");
  }
}

/** An error's body: {"object": "error", "status": 404, "code": "object_not_found", "message": "…"}. */
function refused(status, text) {
  let error = {};
  try {
    error = JSON.parse(text) ?? {};
  } catch {
    // Not of Notion itself, but of something on the way to it.
  }
  const code = String(error.code ?? `status ${status}`).slice(0, 60);
  const message = [...String(error.message ?? "")].slice(0, MESSAGE_MAX).join("");
  const said = `Notion refused it (${code})${message && `: ${message}`}`;
  if (code === "validation_error") return new Failure(said, "invalid-input");
  return new Failure(said);
}
