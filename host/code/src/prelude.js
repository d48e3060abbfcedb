// What a script sees. Evaluated once for each run, before the script: it keeps what it needs of the language, so that a
// script which changes that breaks nothing but itself.
(host) => {
  "use strict";
  const { callAll, input, began } = host;
  const { stringify, parse } = JSON;
  const { freeze, defineProperty } = Object;
  const { construct, apply } = Reflect;
  const { max } = Math;
  const texts = Object.getOwnPropertyDescriptors(String.prototype);
  const { charCodeAt, includes, match, replace, slice, split, toWellFormed, trim } = texts;
  const on = (method, text, ...rest) => apply(method.value, text, rest);
  const OwnPromise = Promise;
  const OwnError = Error;
  const OwnSyntaxError = SyntaxError;
  const OwnMap = Map;
  const mapGet = Map.prototype.get;
  const mapSet = Map.prototype.set;
  const then = Promise.prototype.then;
  const AsyncFunction = (async () => {}).constructor;

  // Characters of console.log at most, of which the result has the beginning. Calls that are made at once at most: the
  // host makes fewer.
  const CONSOLE_MAX = 256 * 1024;
  const BATCH_MAX = 64;
  // Characters of a result that are shown with calls that were not made: what a model needs to recognize it.
  const RESULT_SHOWN = 1000;
  // Lines before the script's first, in what the engine makes of it.
  const LINES_BEFORE = 3;

  // The host takes no text with half of a surrogate pair, as a cut within an emoji leaves it: U+FFFD stands for it. In
  // JSON it is an escape, and after another backslash it is not.
  const whole = (text) => on(toWellFormed, text);
  const wholeJson = (json) => {
    if (!on(includes, json, "\\ud")) return json;
    return on(replace, json, /\\(?:ud[89a-f][0-9a-f]{2}|.)/g, (escape) => (escape.length === 6 ? "\ufffd" : escape));
  };
  const find = (words, limit) => host.find(whole(words), limit);
  const describe = (name) => host.describe(whole(name));

  // The beginning of a text, of at most this many characters and without half of a pair.
  const beginning = (text, most) => {
    if (text.length <= most) return text;
    const last = on(charCodeAt, text, most - 1);
    return on(slice, text, 0, last >= 0xd800 && last <= 0xdbff ? most - 1 : most);
  };

  // JSON would have an empty object for a promise: a call that nothing awaits would seem to have given one.
  defineProperty(OwnPromise.prototype, "toJSON", {
    value: (key) => {
      const where = typeof key !== "string" || key === "" ? "it" : `the value of ${stringify(key)}`;
      throw new TypeError(`${where} is a promise: await it`);
    },
  });

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
    if (value instanceof OwnPromise) return "(a promise: await it)";
    try {
      const text = typeof value === "object" ? stringify(value) : undefined;
      return text === undefined ? String(value) : text;
    } catch (error) {
      return error instanceof OwnError ? `(cannot be shown: ${error.message})` : "(cannot be shown)";
    }
  };
  const print = (...values) => {
    if (printed.length >= CONSOLE_MAX) {
      unprinted += 1;
      return;
    }
    let line = "";
    for (let place = 0; place < values.length; place += 1) line += (place === 0 ? "" : " ") + shown(values[place]);
    printed += (printed === "" ? "" : "\n") + beginning(line, CONSOLE_MAX - printed.length);
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

  // The line and column of the script in a stack trace. Errors that the engine throws by itself may have none. Frames of
  // the script are in parentheses: without them stands a place in a text that was read, such as that of JSON.parse.
  const spot = (error) => {
    const found = typeof error.stack === "string" ? on(match, error.stack, /\(<input>:(\d+):(\d+)\)/) : null;
    if (found === null || !(found[1] > LINES_BEFORE)) return null;
    return [(found[1] - LINES_BEFORE) >>> 0, found[2] >>> 0];
  };

  // Calls that wait to be made, each with its promise.
  let waiting = [];
  let calls = 0;
  const call = (wanted, values) => {
    const name = whole(wanted);
    const json = stringify(values === undefined ? {} : values);
    const given = json === undefined ? "{}" : wholeJson(json);
    calls += 1;
    const error = new ToolError(name, calls);
    return new OwnPromise((resolve, reject) => {
      waiting[waiting.length] = { name, given, error, at: spot(error), resolve, reject };
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
    // What the language looks up by itself is no call: `await tools` must not take it for a promise, and it has a text.
    then: undefined,
    toJSON: undefined,
    toString: () => "[tools]",
    valueOf: undefined,
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
      result = json === undefined ? "null" : wholeJson(json);
      if (value === undefined) print("(the script returned nothing: end it with `return VALUE`)");
    } catch (error) {
      problem = `the result has no JSON form: ${explain(error)}`;
    }
  };
  const fail = (error) => {
    ended = true;
    problem = explain(error);
  };

  // A script as some models send it, in a fence of Markdown. An empty line stays for the fence's: lines keep their numbers.
  const unfenced = (code) => {
    const fenced = on(match, code, /^(\s*)```[\w+-]*[ \t]*\r?\n([^]*?)\s*```\s*$/);
    return fenced === null ? code : `${fenced[1]}\n${fenced[2]}`;
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

  // True for a line with what only TypeScript and modules have: imports, declarations, types of variables, of parameters, of
  // functions and by name, assertions, and arguments that are types.
  const isForeign = (line) => {
    const forms = [
      /^\s*(?:import|export)\b(?!\s*[(.])/,
      /\b(?:interface|enum|namespace|declare|abstract)\s+[A-Za-z_$]|\btype\s+[\w$]+\s*[=<]/,
      /\b(?:const|let|var)\s+[\w$]+\s*:/,
      /\(\s*[\w$]+\??\s*:/,
      /\)\s*:\s*[A-Za-z_$][\w$<>[\], |]*(?:\{|=>)/,
      /[\w$)\]}?]\s*:\s*(?:string|number|boolean|any|unknown|void|Record|Array|Promise)\b/,
      /\b(?:as|satisfies)\s+(?:const|string|number|boolean|any|unknown|[A-Z{[])/,
      /[)\]]!\s*[.;,]|[\w$]!\.[\w$]/,
      /[\w$]<[\w$\s,|[\]{}:]+>\s*\(|=\s*<[\w$]+>/,
    ];
    for (let form = 0; form < forms.length; form += 1) if (on(match, line, forms[form]) !== null) return true;
    return false;
  };
  // Why the engine cannot read a script. Without a column: the engine counts those of a text around the script's. What is
  // missing or too much it finds past the script's end, and blames a bracket that is not the script's.
  const misread = (code, error) => {
    const at = error instanceof OwnSyntaxError ? on(match, error.stack, /at <input>:(\d+)/) : null;
    if (at === null) return explain(error);
    const lines = on(split, on(replace, code, /\s+$/, ""), "\n");
    const line = max(at[1] - LINES_BEFORE, 1);
    if (line > lines.length) return `SyntaxError: the end is missing, or there is a bracket too many (line ${lines.length})`;
    const hint = isForeign(lines[line - 1]) ? ". Scripts are JavaScript, without types and imports" : "";
    return `SyntaxError: ${error.message} (line ${line})${hint}`;
  };
  // Calls that the script has left behind. A result would claim that they were made.
  const unmade = () => {
    const count = waiting.length;
    const { name, error } = waiting[0];
    const many = count === 1 ? "a call that it did not await was" : `${count} calls that it did not await were`;
    const first = `${count === 1 ? "of" : "the first of"} ${name}${place(error)}`;
    const made = calls - count;
    const others = made === 0 ? "" : made === 1 ? " Its other call is not undone." : ` Its ${made} other calls are not undone.`;
    const advice = "Await every call, several with `await Promise.all([…])`.";
    return `the script ended before ${many} made, ${first}. ${advice}${others} It returned ${beginning(result, RESULT_SHOWN)}`;
  };

  return {
    begin: (given) => {
      const code = unfenced(given);
      let script;
      try {
        script = compiled(code);
      } catch (error) {
        ended = true;
        problem = misread(code, error);
        return;
      }
      const body = async () => {
        const value = await script(input, tools);
        return typeof value === "function" ? value(input, tools) : value;
      };
      apply(then, body(), [finish, fail]);
    },
    // Makes the calls that wait. False if there are none, or the script has ended.
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
      let ends;
      try {
        ends = parse(callAll(stringify(wanted)));
      } catch (error) {
        for (let at = 0; at < batch.length; at += 1) batch[at].reject(error);
        return true;
      }
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
      else if (problem === null && waiting.length > 0) problem = unmade();
      const said = problem === null ? null : whole(problem);
      return { console: whole(printed), unprinted: unprinted >>> 0, problem: said, result };
    },
  };
}
