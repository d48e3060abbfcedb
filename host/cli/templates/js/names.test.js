import assert from "node:assert/strict";
import { test } from "node:test";

import { checked } from "../src/names.js";

test("names lead nowhere else", () => {
  assert.equal(checked("tea-2"), "tea-2");
  for (const name of ["", "a/b", "..", "a.b", "x".repeat(65)]) assert.throws(() => checked(name));
});
