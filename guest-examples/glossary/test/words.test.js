import assert from "node:assert/strict";
import test from "node:test";

import { completion, prompts, resources, tools } from "../src/tool.js";

test("a word is defined, and another is refused", () => {
  assert.match(tools.callTool("glossary_define", '{"word":"Fuel"}').content[0].val.text, /instructions/);
  assert.throws(() => tools.callTool("glossary_define", '{"word":"tea"}'), { tag: "invalid-input" });
});

test("a prompt holds what the word means and whom it is for", () => {
  const { messages } = prompts.getPrompt("explain", [
    { name: "word", value: "grant" },
    { name: "to", value: "a child" },
  ]);
  assert.equal(messages[0].content.val.uri, "term:///grant");
  assert.equal(messages[1].content.val.text, 'Explain "grant" to a child.');
  assert.throws(() => prompts.getPrompt("explain", [{ name: "word", value: "tea" }]), { tag: "invalid-input" });
});

test("words are completed", () => {
  assert.deepEqual(completion.complete({ argument: "word", value: "S" }).values, ["sandbox"]);
  assert.deepEqual(completion.complete({ argument: "to", value: "" }).values, []);
});

test("resources are read", () => {
  assert.deepEqual(resources.listResources().map(({ uri }) => uri), ["term:///", "term:///{word}"]);
  assert.match(resources.readResource("term:///")[0].body.val, /^component: .*\nfuel: /);
  assert.throws(() => resources.readResource("term:///tea"), { tag: "invalid-input" });
});
