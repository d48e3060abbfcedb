// The component's exports: the contract of wit/tools.wit. What the tools do is in pages.js, how they ask in notion.js.

import { getEnvironment } from "wasi:cli/environment@0.2.12";

import { DEFINITIONS } from "./definitions.js";
import { Failure, Notion } from "./notion.js";
import { createPage, deletePage, getPage, searchPages } from "./pages.js";

const TOOLS = { search_pages: searchPages, get_page: getPage, create_page: createPage, delete_page: deletePage };

export const tools = {
  listTools: () => DEFINITIONS,

  // A thrown value becomes the error of the `result`: a `failure` of wit/types.wit.
  async callTool(name, argumentsJson) {
    const variables = new Map(getEnvironment());
    const notion = new Notion({
      address: variables.get("NOTION_URL"),
      fetch: (...request) => fetch(...request),
      sleep: (milliseconds) => new Promise((wake) => setTimeout(wake, milliseconds)),
      now: () => Date.now(),
    });
    try {
      const structured = await TOOLS[name](notion, JSON.parse(argumentsJson));
      return { content: [], structuredJson: JSON.stringify(structured), isError: false, metaJson: undefined };
    } catch (problem) {
      if (problem instanceof Failure) throw { tag: problem.tag, val: problem.message };
      throw problem;
    }
  },
};
