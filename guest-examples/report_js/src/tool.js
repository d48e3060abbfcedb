// The component's exports: the contract. What is written is in report.js, and how other tools are called in calling.js.

import * as host from "toolcell:mcp/calling@1.3.0";

import citiesInput from "../schemas/cities.input.json";
import citiesOutput from "../schemas/cities.output.json";
import tripInput from "../schemas/trip.input.json";
import tripOutput from "../schemas/trip.output.json";
import { CallFailed, Calling } from "./calling.js";
import { cities, trip } from "./report.js";

const calling = new Calling(host);

const definition = (name, title, description, input, output) => ({
  name,
  title,
  description,
  inputSchemaJson: JSON.stringify(input),
  outputSchemaJson: JSON.stringify(output),
  hints: { readOnly: true, openWorld: false },
  icons: [],
});

const DEFINITIONS = [
  definition(
    "report_trip",
    "Report on a trip",
    "Writes a few lines on the usual weather where somebody goes, beside what it is like at home, with drier cities that " +
      "are about as warm.",
    tripInput,
    tripOutput,
  ),
  definition(
    "report_cities",
    "Cities by warmth",
    "Puts cities in the order of how warm their days usually are in a month.",
    citiesInput,
    citiesOutput,
  ),
];

const FUNCTIONS = { report_trip: trip, report_cities: cities };

export const tools = {
  listTools: () => DEFINITIONS,

  callTool(name, argumentsJson) {
    try {
      const answer = FUNCTIONS[name](calling, JSON.parse(argumentsJson));
      return { content: [], structuredJson: JSON.stringify(answer), isError: false };
    } catch (problem) {
      // A thrown value becomes the error of the `result`: a `failure` of wit/types.wit.
      throw problem instanceof CallFailed ? { tag: "failed", val: problem.message } : problem;
    }
  },
};
