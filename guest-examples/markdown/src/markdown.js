// The component's exports: the functions of wit/markdown.wit. What they do is in text.js.

import { outline, references, toHtml } from "./text.js";

export const convert = { outline, references, toHtml };

// This runs once, when the component is built, and every call begins with the memory that it left. The engine compiles
// a function when it is called for the first time: for those called here, that is over before any call. Parsers for
// every choice of options are made as well. It saves two thirds of a short call.
const EXAMPLE = `# One *two* \`three\`

A [link](https://example.com "title"), an ![image](a.png), **strong** ~~struck~~ <https://example.org> &amp; \\*

> - a list
>   1. in another

| a | b |
|---|:-:|
| c | d |

\`\`\`js
code
\`\`\`

    more code

Two
===
---
<b>shown</b> "quoted" -- example.com...
[reference][r]

[r]: /r`;

for (const choice of Array(8).keys()) {
  toHtml(EXAMPLE, { linkAddresses: !!(choice & 1), keepLineBreaks: !!(choice & 2), typographic: !!(choice & 4) });
}
outline(EXAMPLE);
references(EXAMPLE);
