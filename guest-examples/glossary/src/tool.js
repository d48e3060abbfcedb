// The component's exports: the contract of wit/, with prompts, completion and resources. What they say is in words.js.

import { SCHEME, beginning, meaning, read } from "./words.js";

const INPUT = {
  type: "object",
  properties: { word: { type: "string" } },
  required: ["word"],
  additionalProperties: false,
};

const OUTPUT = {
  type: "object",
  properties: { meaning: { type: "string" } },
  required: ["meaning"],
  additionalProperties: false,
};

const text = (said) => ({ tag: "text", val: { text: said, annotations: undefined, metaJson: undefined } });

// A thrown value becomes the error of the `result`: a `failure` of wit/types.wit.
const wrong = (said) => ({ tag: "invalid-input", val: said });

function known(word) {
  const said = meaning(word);
  if (said === undefined) throw wrong(`the glossary has no word ${word}`);
  return said;
}

export const tools = {
  listTools: () => [
    {
      name: "glossary_define",
      title: "Define a word",
      description: "Says what a word of toolcell means.",
      inputSchemaJson: JSON.stringify(INPUT),
      outputSchemaJson: JSON.stringify(OUTPUT),
      hints: { readOnly: true, openWorld: false },
      icons: [],
    },
  ],
  callTool(name, argumentsJson) {
    const meaning = known(JSON.parse(argumentsJson).word);
    return { content: [text(meaning)], structuredJson: JSON.stringify({ meaning }), isError: false };
  },
};

export const prompts = {
  listPrompts: () => [
    {
      name: "explain",
      title: "Explain a word",
      description: "Asks for an explanation of a word of the glossary.",
      arguments: [
        { name: "word", required: true, values: [] },
        { name: "to", description: "Whom it is explained to.", required: false, values: ["a child", "an expert"] },
      ],
      icons: [],
    },
  ],
  getPrompt(name, given) {
    const value = new Map(given.map((argument) => [argument.name, argument.value]));
    const word = value.get("word");
    const body = { tag: "text", val: known(word) };
    const resource = { uri: SCHEME + encodeURIComponent(word), mimeType: "text/plain", body };
    return {
      messages: [
        { role: "user", content: { tag: "embedded-resource", val: resource } },
        { role: "user", content: text(`Explain "${word}" to ${value.get("to") ?? "me"}.`) },
      ],
    };
  },
};

export const completion = {
  complete({ argument, value }) {
    // The prompt's argument and the template's variable have one name. The host knows the others itself.
    const values = argument === "word" ? beginning(value) : [];
    return { values, total: BigInt(values.length), hasMore: false };
  },
};

export const resources = {
  listResources: () => [
    { uri: SCHEME, name: "index", title: "All words", mimeType: "text/plain", icons: [], variables: [] },
    { uri: `${SCHEME}{word}`, name: "word", title: "A word", mimeType: "text/plain", icons: [], variables: [] },
  ],
  readResource(uri) {
    const said = read(uri);
    if (said === undefined) throw wrong(`there is no word at ${uri}`);
    return [{ body: { tag: "text", val: said }, metaJson: JSON.stringify({ "glossary/letters": said.length }) }];
  },
};

// A function is compiled when it is called for the first time, and that is kept: it happens when the component is built.
tools.listTools();
prompts.listPrompts();
prompts.getPrompt("explain", [{ name: "word", value: "fuel" }]);
completion.complete({ argument: "word", value: "f" });
resources.listResources();
resources.readResource(SCHEME);
