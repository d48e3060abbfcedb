import assert from "node:assert/strict";
import { test } from "node:test";

import { count } from "../src/counts.js";

test("words are counted", () => {
  assert.deepEqual(count("one two\nthree", 1), { lines: 2, words: 3, longest: "three" });
  assert.deepEqual(count("", 1), { lines: 0, words: 0, longest: undefined });
});

test("short words are left out", () => {
  assert.equal(count("a bb cc", 2).words, 2);
  assert.throws(() => count("a", 0));
});
