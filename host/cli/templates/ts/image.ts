// The component's exports: the contract of wit/tools.wit.

import type { CallResult, Tool } from "toolcell:mcp/types@1.3.0";

import input from "../schemas/input.json";
import { explained } from "./errors";
import { bars } from "./png";

const DEFINITION: Tool = {
  name: "draw_bars",
  title: "Draw bars",
  description: "Draws numbers from 0 to 100 as a picture of bars, from left to right.",
  inputSchemaJson: JSON.stringify(input),
  outputSchemaJson: undefined,
  hints: { readOnly: true, destructive: false, idempotent: true, openWorld: false },
  icons: [],
  metaJson: undefined,
};

export const tools = explained(
  {
    listTools: (): Tool[] => [DEFINITION],

    callTool(_name: string, argumentsJson: string): CallResult {
      const data = bars(JSON.parse(argumentsJson).values);
      const picture = { data, mimeType: "image/png", annotations: undefined, metaJson: undefined };
      return { content: [{ tag: "image", val: picture }], structuredJson: undefined, isError: false, metaJson: undefined };
    },
  },
  (message) => ({ tag: "failed", val: message }),
);

// This runs once, when the component is built. What the engine compiles here is over before any call.
tools.callTool("draw_bars", '{"values":[1]}');
