import assert from "node:assert/strict";
import { test } from "node:test";
import { inflateSync } from "node:zlib";

import { bars } from "../src/png";

test("bars are as high as their values", () => {
  const picture = Buffer.from(bars([100, 0, 50]));
  assert.equal(picture.subarray(1, 4).toString(), "PNG");
  assert.equal(picture.readUInt32BE(16), 24, "pixels wide");
  const data = picture.indexOf("IDAT");
  const rows = inflateSync(picture.subarray(data + 4, data + 4 + picture.readUInt32BE(data - 4)));
  const inked = (bar: number) => Array.from({ length: 100 }, (_, y) => rows[y * 25 + 1 + bar * 8]).filter((grey) => grey === 0x30);
  assert.deepEqual([0, 1, 2].map((bar) => inked(bar).length), [100, 0, 50]);
});
