import assert from "node:assert/strict";
import test from "node:test";

import { CallFailed, Calling } from "../src/calling.js";
import { cities, trip, written } from "../src/report.js";

const called = (value, said = []) => ({
  content: said.map((text) => ({ tag: "text", val: { text } })),
  structuredJson: value === undefined ? undefined : JSON.stringify(value),
});
const normals = (city, high) => called({ city, months: [{ name: "July", high, precipitation: 4 }] });
const ok = (val) => ({ tag: "ok", val });
const failed = (...said) => ({ tag: "err", val: { tag: "failed", val: called(undefined, said) } });
const refused = { tag: "refused", val: { reason: "busy", text: "busy: try again" } };

test("a report compares with home", () => {
  const july = { name: "July", high: 28, precipitation: 4 };
  assert.equal(
    written("Oslo", "Lisbon", july, 6, 82.4, ["Athens", "Tunis"]),
    "July in Lisbon: days of 28 °C (82 °F), 6 degrees warmer than in Oslo, and 4 mm of rain. About as warm and no wetter: Athens, Tunis.",
  );
  assert.match(written("Rome", "Lisbon", july, 0, 82.4, []), /, as warm as in Rome, and 4 mm of rain\.$/);
  assert.match(written("Cairo", "Lisbon", july, -7, 82.4, []), /7 degrees colder than in Cairo/);
});

test("three tools are called, and a report does without the last", () => {
  const calling = new Calling({
    call(tool, given) {
      if (tool === "weather_find") throw Object.assign(new Error(), { payload: refused });
      assert.deepEqual(JSON.parse(given), { value: 28, from: "celsius", to: "fahrenheit" });
      return called({ value: 82.4 });
    },
    callAll: () => [ok(normals("Oslo", 23)), ok(normals("Lisbon", 28))],
  });
  const { warmer, alike } = trip(calling, { from: "Oslo", to: "Lisboa", month: 7 });
  assert.deepEqual({ warmer, alike }, { warmer: 5, alike: [] });
});

test("a city that is not known is left out with its reason", () => {
  const calling = new Calling({ callAll: () => [ok(normals("Oslo", 22)), failed("no", "climate"), ok(normals("Rome", 31))] });
  assert.deepEqual(cities(calling, { cities: ["Oslo", "Nowhere", "Rome"], month: 7 }), {
    warmest_first: [{ city: "Rome", high: 31 }, { city: "Oslo", high: 22 }],
    not_found: ["weather_normals: no climate"],
  });
  assert.throws(() => trip(calling, { from: "Oslo", to: "Nowhere", month: 7 }), CallFailed);
});

test("a call without a result says whose and why", () => {
  const busy = new Calling({
    call() {
      throw Object.assign(new Error(), { payload: refused });
    },
    callAll: () => [ok(called([1])), ok(called(undefined)), { tag: "err", val: refused }],
  });
  assert.throws(() => busy.call("count", {}), { message: "count: busy: try again" });
  const [first, second, third] = busy.callAll("count", [{}, {}, {}]);
  assert.deepEqual(first, [1]);
  assert.equal(second.message, "count: it gave no JSON value");
  assert.equal(third.message, "count: busy: try again");
});
