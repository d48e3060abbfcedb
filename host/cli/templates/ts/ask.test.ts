import assert from "node:assert/strict";
import { test } from "node:test";

import { booked } from "../src/booking";

test("the day is the person's", () => {
  assert.equal(booked(2, '{"day":"2026-01-31"}'), "A table for 2 is booked on 2026-01-31.");
  assert.equal(booked(2, undefined), "Nothing is booked: the person chose no day.");
});
