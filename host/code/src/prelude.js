// What a script sees. Evaluated once for each run, before the script: it keeps what it needs of the language, so that a
// script which changes that breaks nothing but itself.
(host) => {
  "use strict";
  const { callAll, find, describe, input, began } = host;
  const { stringify, parse } = JSON;
  const { freeze, defineProperty } = Object;
  const { construct, apply } = Reflect;
  const { replace, slice, split, match, trim } = Object.getOwnPropertyDescriptors(String.prototype);
  const on = (method, text, ...rest) => apply(method.value, text, rest);
  const OwnPromise = Promise;
  const OwnError = Error;
  const OwnMap = Map;
  const mapGet = Map.prototype.get;
  const mapSet = Map.prototype.set;
  const then = Promise.prototype.then;
  const AsyncFunction = (async () => {}).constructor;

  // Characters of console.log at most, of which the result has the beginning. Calls that are made at once at most: the
  // host makes fewer.
  const CONSOLE_MAX = 256 * 1024;
  const BATCH_MAX = 64;
  // Lines before the script's first, in what the engine makes of it.
  const LINES_BEFORE = 3;

  // No clock but the run's start, and the same random numbers each time that the same script has the same input.
  const OwnDate = Date;
  // The host is asked once, by the scripts that want to know.
  let begun;
  const started = () => {
    if (begun === undefined) begun = began();
    return begun;
  };
  const FixedDate = function Date(...values) {
    if (new.target === undefined) return new OwnDate(started()).toString();
    return construct(OwnDate, values.length === 0 ? [started()] : values, new.target);
  };
  defineProperty(FixedDate, "prototype", { value: OwnDate.prototype, writable: false });
  defineProperty(OwnDate.prototype, "constructor", { value: FixedDate });
  FixedDate.now = started;
  FixedDate.parse = OwnDate.parse;
  FixedDate.UTC = OwnDate.UTC;
  globalThis.Date = FixedDate;
  delete globalThis.performance;
  let state = host.seed >>> 0;
  Math.random = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };

  let printed = "";
  let unprinted = 0;
  const shown = (value) => {
    if (typeof value === "string") return value;
    if (value instanceof OwnError) return `${value.name}: ${value.message}`;
    try {
      const text = typeof value === "object" ? stringify(value) : undefined;
      return text === undefined ? String(value) : text;
    } catch {
      return "(cannot be shown)";
    }
  };
  const print = (...values) => {
    if (printed.length >= CONSOLE_MAX) {
      unprinted += 1;
      return;
    }
    let line = "";
    for (let place = 0; place < values.length; place += 1) line += (place === 0 ? "" : " ") + shown(values[place]);
    printed += (printed === "" ? "" : "\n") + on(slice, line, 0, CONSOLE_MAX - printed.length);
  };
  globalThis.console = { log: print, info: print, warn: print, error: print, debug: print };

  class ToolError extends OwnError {
    constructor(tool, number) {
      super("");
      defineProperty(this, "name", { value: "ToolError" });
      this.tool = tool;
      this.number = number;
    }
  }

  // The line and column of the script in a stack trace. Errors that the engine throws by itself may have none.
  const spot = (error) => {
    const found = typeof error.stack === "string" ? on(match, error.stack, /<input>:(\d+):(\d+)/) : null;
    if (found === null || !(found[1] > LINES_BEFORE)) return null;
    return [(found[1] - LINES_BEFORE) >>> 0, found[2] >>> 0];
  };

  // Calls that wait to be made, each with its promise.
  let waiting = [];
  let calls = 0;
  const call = (name, values) => {
    calls += 1;
    const error = new ToolError(name, calls);
    const given = stringify(values === undefined ? {} : values);
    return new OwnPromise((resolve, reject) => {
      waiting[waiting.length] = { name, given: given === undefined ? "{}" : given, error, at: spot(error), resolve, reject };
    });
  };

  // The tool that a property stands for. A tool whose name is not an identifier is there with `_` for each other character.
  const alias = (name) => on(replace, on(replace, name, /[^A-Za-z0-9_$]/g, "_"), /^(?=[0-9])/, "_");
  const names = new OwnMap();
  const named = (property) => {
    if (on(match, property, /_/) === null) return property;
    const known = apply(mapGet, names, [property]);
    if (known !== undefined) return known;
    let name = property;
    if (describe(property) === "null") {
      const found = parse(find(on(trim, on(replace, property, /[_$]+/g, " ")), 50));
      let fitting = 0;
      for (let place = 0; place < found.length; place += 1) {
        if (alias(found[place].name) !== property) continue;
        fitting += 1;
        name = found[place].name;
      }
      if (fitting > 1) {
        throw new OwnError(`tools.${property} may be any of ${fitting} tools: write tools.call("NAME", arguments)`);
      }
    }
    apply(mapSet, names, [property, name]);
    return name;
  };
  const described = (name) => {
    const tool = parse(describe(String(name)));
    if (tool === null) throw new OwnError(`there is no tool ${stringify(String(name))} that this script may call`);
    return tool;
  };
  const own = {
    __proto__: null,
    call: (name, values) => call(String(name), values),
    find: async (words, limit) => {
      const found = parse(find(words === undefined ? "" : String(words), limit === undefined ? 10 : limit >>> 0));
      for (let place = 0; place < found.length; place += 1) found[place].property = alias(found[place].name);
      return found;
    },
    describe: async (name) => described(name),
    // `await tools` must not take it for a promise.
    then: undefined,
  };
  const tools = new Proxy(freeze({ __proto__: null }), {
    get: (_, property) => {
      if (typeof property !== "string") return undefined;
      if (property in own) return own[property];
      return (values) => call(named(property), values);
    },
    has: (_, property) => typeof property === "string",
    set: () => {
      throw new TypeError("tools cannot be changed");
    },
    defineProperty: () => {
      throw new TypeError("tools cannot be changed");
    },
  });
  for (const [name, value] of [["tools", tools], ["input", input]]) {
    defineProperty(globalThis, name, { value, configurable: false, writable: false, enumerable: true });
  }

  let ended = false;
  let result = null;
  let problem = null;

  // The same for people.
  const place = (error) => {
    const at = spot(error);
    return at === null ? "" : ` (line ${at[0]}, column ${at[1]})`;
  };
  const explain = (error) => {
    try {
      // So the engine says that there is no memory even for an error.
      if (error === null) return "the script ran out of memory, or threw null";
      if (!(error instanceof OwnError)) return `the script threw ${shown(error)}`;
      if (error instanceof ToolError) return `${error.message}${place(error)}, in call ${error.number} of the script`;
      return `${error.name}: ${error.message}${place(error)}`;
    } catch {
      return "the script threw something that cannot be shown";
    }
  };
  const finish = (value) => {
    ended = true;
    try {
      const json = stringify(value);
      result = json === undefined ? "null" : json;
      if (value === undefined) print("(the script returned nothing: end it with `return VALUE`)");
    } catch (error) {
      problem = `the result has no JSON form: ${explain(error)}`;
    }
  };
  const fail = (error) => {
    ended = true;
    problem = explain(error);
  };

  // The script as a function: an expression, such as `await tools.now()` or `async () => { … }`, else the body of one.
  const compiled = (code) => {
    const expression = on(replace, code, /[;\s]+$/, "");
    try {
      return construct(AsyncFunction, ["input", "tools", `return (\n${expression}\n)`]);
    } catch {
      return construct(AsyncFunction, ["input", "tools", `\n${code}\n`]);
    }
  };

  return {
    begin: (code) => {
      let script;
      try {
        script = compiled(code);
      } catch (error) {
        fail(error);
        return;
      }
      const body = async () => {
        const value = await script(input, tools);
        return typeof value === "function" ? value(input, tools) : value;
      };
      apply(then, body(), [finish, fail]);
    },
    // Makes the calls that wait. False if there are none, or nobody waits for them.
    flush: () => {
      if (ended || waiting.length === 0) return false;
      const batch = [];
      const rest = [];
      const wanted = [];
      for (let at = 0; at < waiting.length; at += 1) {
        if (at >= BATCH_MAX) {
          rest[rest.length] = waiting[at];
          continue;
        }
        batch[at] = waiting[at];
        wanted[at] = [waiting[at].name, waiting[at].given, waiting[at].at];
      }
      waiting = rest;
      const ends = parse(callAll(stringify(wanted)));
      for (let at = 0; at < batch.length; at += 1) {
        const { name, error, resolve, reject } = batch[at];
        const end = ends[at];
        if (end.reason === undefined) {
          resolve(end.value);
          continue;
        }
        error.message = `${name}: ${end.error}`;
        error.reason = end.reason;
        error.value = end.value;
        reject(error);
      }
      return true;
    },
    end: () => {
      if (!ended) problem = "the script waits for something that never comes; there are no timers, only calls of tools";
      return { console: printed, unprinted: unprinted >>> 0, problem, result };
    },
  };
}
