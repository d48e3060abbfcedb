// What an exception becomes. Knows nothing of components.

/**
 * The same functions, except that an `Error` they throw becomes its message, with its place in `src/`. Whatever else
 * they throw stays as it is. `error` makes of the message what the WIT declares as the function's error.
 */
export function explained(functions, error = (message) => message) {
  const fail = (problem) => {
    throw problem instanceof Error ? error(message(problem)) : problem;
  };
  const explains = (run) => (...values) => {
    try {
      const answer = run(...values);
      return answer instanceof Promise ? answer.catch(fail) : answer;
    } catch (problem) {
      return fail(problem);
    }
  };
  return Object.fromEntries(Object.entries(functions).map(([name, run]) => [name, explains(run)]));
}

/** The message of an `Error`, with the innermost place in `src/` that its stack names. */
export function message({ name, message, stack }) {
  const lines = [...String(stack).matchAll(/(?:tool|user)\.js:(\d+):\d+/g)].map(([, line]) => line);
  // build.mjs adds where the lines of the built file come from.
  const place = lines.map((line) => globalThis.places?.[line]).find(Boolean);
  const text = name === "Error" ? message : `${name}: ${message}`;
  return place ? `${text} (${place})` : text;
}
