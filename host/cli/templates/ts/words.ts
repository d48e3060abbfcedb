// The component's exports: the functions of wit/tool.wit, with their names in camelCase. What they do is in counts.ts.

import type { Counts } from "local:tool/text";

import { count } from "./counts";
import { explained } from "./errors";

export const text = explained({
  // An absent `option` is `null` in QuickJS and `undefined` in StarlingMonkey: `??` takes both, a default parameter does not.
  // A string that is thrown becomes the error of a `result`.
  countWords: (text: string, minLength?: number | null): Counts => count(text, minLength ?? 1),
});

// This runs once, when the component is built. What the engine compiles here is over before any call.
text.countWords("one two\nthree", 2);
