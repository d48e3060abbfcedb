import assert from "node:assert/strict";
import { test } from "node:test";

import { account } from "../src/tool.js";

function answering(status, text) {
  globalThis.fetch = async () => new Response(text, { status });
}

test("an account is read", async () => {
  answering(200, '{"login":"ada","name":null,"id":1}');
  assert.deepEqual(await account.whoAmI(), { login: "ada", name: undefined });
});

test("a refused token is told of", async () => {
  answering(401, "{}");
  assert.match(await account.whoAmI().then(String, String), /refuses the token/);
});
