// The component's exports: the functions of wit/tool.wit, with their names in camelCase.

import { increment } from "wasi:keyvalue/atomics@0.2.0-draft";
import { open } from "wasi:keyvalue/store@0.2.0-draft";

import { explained } from "./errors.js";
import { checked } from "./names.js";

export const counters = explained({
  // A string that is thrown becomes the error of the `result`.
  count(name) {
    const key = checked(name);
    try {
      return increment(open(""), key, 1n);
    } catch (problem) {
      throw `it is not counted: ${problem?.payload?.val ?? problem?.payload?.tag ?? problem}`;
    }
  },
});
