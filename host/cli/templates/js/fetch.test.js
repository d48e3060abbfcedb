import assert from "node:assert/strict";
import { test } from "node:test";

import { todos } from "../src/tool.js";

function answering(status, text) {
  globalThis.fetch = async () => new Response(text, { status });
}

test("a thing to do is read", async () => {
  answering(200, '{"id":1,"title":"tea","completed":true}');
  assert.deepEqual(await todos.getTodo(1), { title: "tea", completed: true });
});

test("an error says why", async () => {
  const thrown = () => todos.getTodo(1).then(String, String);
  answering(404, '{"message":"Not Found"}');
  assert.equal(await thrown(), "the API answers 404: Not Found");
  answering(500, "<h1>oops</h1>");
  assert.equal(await thrown(), "the API answers 500: <h1>oops</h1>");
  answering(200, "[]");
  assert.equal(await thrown(), "the API answers in another form");
});
