// What the tools answer, run natively: no component is needed for it.

import assert from "node:assert/strict";
import { test } from "node:test";

import { outline, references, toHtml } from "../src/text.js";

test("text becomes HTML with anchors, a title and a count of words", () => {
  const { html, title, headings, words } = toHtml("# Tea & *milk*\n\nPour `it` slowly.\n", undefined);
  assert.equal(html, '<h1 id="tea--milk">Tea &amp; <em>milk</em></h1>\n<p>Pour <code>it</code> slowly.</p>\n');
  assert.equal(title, "Tea & milk");
  assert.deepEqual(headings, [{ level: 1, text: "Tea & milk", anchor: "tea--milk", line: 1 }]);
  assert.equal(words, 4);
});

test("tables and strikethrough are understood", () => {
  assert.match(toHtml("| a |\n|---|\n| ~~b~~ |\n").html, /<td><s>b<\/s><\/td>/);
});

test("what could act in a browser is shown as text", () => {
  for (const [markdown, html] of [
    ["<script>alert(1)</script>", "<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>\n"],
    ["[x](javascript:alert(1))", "<p>[x](javascript:alert(1))</p>\n"],
    ['<img src=x onerror="alert(1)">', "<p>&lt;img src=x onerror=&quot;alert(1)&quot;&gt;</p>\n"],
  ]) {
    assert.equal(toHtml(markdown).html, html);
  }
});

test("each option does what it says, and only where it is set", () => {
  for (const [options, markdown, without, within] of [
    ["linkAddresses", "see https://example.com", /see https/, /<a href="https:\/\/example.com">/],
    ["keepLineBreaks", "a\nb", /a\nb/, /a<br>\nb/],
    ["typographic", '"a" -- b...', /&quot;a&quot; -- b\.\.\./, /“a” – b…/],
  ]) {
    assert.match(toHtml(markdown, {}).html, without);
    assert.match(toHtml(markdown, { [options]: true }).html, within);
  }
});

test("anchors are never the same twice", () => {
  const anchors = outline("# A\n# A\n# A-1\n# A\n# !\n").map(({ anchor }) => anchor);
  assert.equal(new Set(anchors).size, anchors.length);
  assert.deepEqual(anchors, ["a", "a-1", "a-1-1", "a-2", "section"]);
});

test("references are listed with their lines, pictures within links too", () => {
  const markdown = "One\n[two](/2) and\n![three](3.png)\n\n[![four](4.png) five](/5 'title')\n";
  assert.deepEqual(references(markdown), [
    { href: "/2", text: "two", picture: false, line: 2 },
    { href: "3.png", text: "three", picture: true, line: 3 },
    { href: "/5", text: "four five", picture: false, line: 5 },
    { href: "4.png", text: "four", picture: true, line: 5 },
  ]);
});

test("references in a table are in the lines of their rows", () => {
  const lines = references("| a |\n|---|\n| b |\n| [c](d) |\n").map(({ line }) => line);
  assert.deepEqual(lines, [4]);
});

test("nothing comes of nothing", () => {
  assert.deepEqual(toHtml(""), { html: "", title: undefined, headings: [], words: 0 });
  assert.deepEqual([outline(""), references("")], [[], []]);
});
