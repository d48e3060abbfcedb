// The component's exports: the contract of wit/tools.wit.

import { ask } from "toolcell:mcp/asking@1.3.0";
import input from "../schemas/input.json";
import { DAY, booked } from "./booking.js";
import { explained } from "./errors.js";

const DEFINITION = {
  name: "book_table",
  title: "Book a table",
  description: "Books a table in the canteen, for a day that the person is asked for.",
  inputSchemaJson: JSON.stringify(input),
  outputSchemaJson: undefined,
  hints: { readOnly: false, destructive: false, idempotent: false, openWorld: false },
  icons: [],
  metaJson: undefined,
};

export const tools = explained(
  {
    listTools: () => [DEFINITION],

    callTool(_name, argumentsJson) {
      const { people } = JSON.parse(argumentsJson);
      const text = booked(people, asked(`A table for ${people}: on which day?`));
      const said = { text, annotations: undefined, metaJson: undefined };
      return { content: [{ tag: "text", val: said }], structuredJson: undefined, isError: false, metaJson: undefined };
    },
  },
  (message) => ({ tag: "failed", val: message }),
);

/** What the person filled in. With some clients the call ends here, and begins anew once there is an answer: ask first. */
function asked(message) {
  const form = { message, schemaJson: JSON.stringify(DAY) };
  try {
    const [answer] = ask([{ key: "day", question: { tag: "form", val: form } }]);
    return answer.tag === "accepted" ? answer.val : undefined;
  } catch (problem) {
    const unsupported = problem?.payload?.tag === "unsupported";
    throw { tag: "failed", val: unsupported ? "this client asks nobody" : "nobody answered" };
  }
}
