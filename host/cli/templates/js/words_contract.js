// The component's exports: the contract of wit/tools.wit. What the tool does is in counts.js.

import input from "../schemas/input.json";
import output from "../schemas/output.json";

import { count } from "./counts.js";
import { explained } from "./errors.js";

const DEFINITION = {
  name: "count_words",
  title: "Count words",
  description: "Counts the lines and words of a text, and finds its longest word.",
  inputSchemaJson: JSON.stringify(input),
  outputSchemaJson: JSON.stringify(output),
  hints: { readOnly: true, destructive: false, idempotent: true, openWorld: false },
  icons: [],
  metaJson: undefined,
};

export const tools = explained(
  {
    listTools: () => [DEFINITION],

    // What is thrown becomes the error of the `result`: a `failure` of wit/types.wit.
    callTool(_name, argumentsJson) {
      const { text, min_length: minLength = 1 } = JSON.parse(argumentsJson);
      return { content: [], structuredJson: JSON.stringify(counted(text, minLength)), isError: false, metaJson: undefined };
    },
  },
  (message) => ({ tag: "failed", val: message }),
);

function counted(text, minLength) {
  try {
    return count(text, minLength);
  } catch (problem) {
    throw { tag: "invalid-input", val: String(problem) };
  }
}

// This runs once, when the component is built. What the engine compiles here is over before any call.
tools.callTool("count_words", '{"text":"one two\\nthree"}');
