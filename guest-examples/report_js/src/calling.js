// Calling other tools of the same host, whose manifest has to name them in `calls`. Copy this file into tools of yours.
// The host's functions are given, so that tests bring their own: `new Calling(imported)`.

/** A call without a result; the message says which tool, and its words or the host's. */
export class CallFailed extends Error {}

export class Calling {
  /** `host` is what `import * as host from "toolcell:mcp/calling@1.3.0"` gives. */
  constructor(host) {
    this.host = host;
  }

  /** Calls a tool, and returns the JSON value that it gives. Throws `CallFailed`. */
  call(tool, given) {
    let called;
    try {
      called = this.host.call(tool, JSON.stringify(given));
    } catch (problem) {
      // The error of a function's `result` is thrown, with the value in `payload`.
      throw failure(tool, problem?.payload ?? problem);
    }
    return value(tool, called);
  }

  /** Calls a tool with each of these arguments, some of them at once. One without a result is a `CallFailed` in its place. */
  callAll(tool, each) {
    const ends = this.host.callAll(each.map((given) => ({ tool, argumentsJson: JSON.stringify(given) })));
    return ends.map(({ tag, val }) => {
      if (tag === "err") return failure(tool, val);
      try {
        return value(tool, val);
      } catch (problem) {
        return problem;
      }
    });
  }
}

function value(tool, { structuredJson }) {
  if (structuredJson === undefined || structuredJson === null) throw new CallFailed(`${tool}: it gave no JSON value`);
  return JSON.parse(structuredJson);
}

/** The error that `not-called` of wit/calling.wit becomes. */
function failure(tool, { tag, val }) {
  if (tag === "refused") return new CallFailed(`${tool}: ${val.text}`);
  const texts = val.content.filter(({ tag }) => tag === "text").map(({ val }) => val.text);
  return new CallFailed(`${tool}: ${texts.join(" ")}`);
}
