// Markdown as tokens: HTML, headings and references out of them. Knows nothing of components.

import MarkdownIt from "markdown-it";
// The engine of the component has no \p{…} in regular expressions; this package, which markdown-it uses too, is them.
import { P as punctuation, S as symbol } from "uc.micro";

// Parsers with the options asked for so far. Every call begins with the memory that building the component left, so
// those that `markdown.js` has asked for by then are made already.
const parsers = new Map();

function parserFor(options) {
  const made = {
    html: false,
    linkify: options?.linkAddresses ?? false,
    breaks: options?.keepLineBreaks ?? false,
    typographer: options?.typographic ?? false,
  };
  const key = JSON.stringify(made);
  if (!parsers.has(key)) parsers.set(key, new MarkdownIt(made));
  return parsers.get(key);
}

/** The headings of parsed Markdown, each with the token that opens it. */
function* headingsOf(tokens) {
  const taken = new Map();
  for (const [index, token] of tokens.entries()) {
    if (token.type !== "heading_open") continue;
    const text = textOf(tokens[index + 1].children);
    yield { token, level: Number(token.tag.slice(1)), text, anchor: anchorOf(text, taken), line: token.map[0] + 1 };
  }
}

/** What a reader sees of inline tokens. */
function textOf(tokens) {
  const seen = tokens.map(({ type, content, children }) => {
    if (type === "softbreak" || type === "hardbreak") return " ";
    if (type === "image") return textOf(children);
    return content;
  });
  return seen.join("");
}

/** An anchor like GitHub's: lower case, `-` for spaces; the second of a kind ends in `-1`. */
function anchorOf(text, taken) {
  const kept = [...text.toLowerCase()].filter((character) => /[\w -]/.test(character) || !isMark(character));
  const base = kept.join("").trim().replace(/\s/g, "-") || "section";
  let number = taken.get(base) ?? 0;
  let anchor = number === 0 ? base : `${base}-${number}`;
  while (taken.has(anchor)) anchor = `${base}-${++number}`;
  taken.set(base, number + 1);
  if (anchor !== base) taken.set(anchor, 1);
  return anchor;
}

/** The words of all text that is not code. */
function wordsOf(tokens) {
  const texts = tokens.filter(({ type }) => type === "inline").map(({ children }) => children);
  const shown = texts.map((children) => textOf(children.filter(({ type }) => type !== "code_inline")));
  return shown.join(" ").split(/\s+/).filter((word) => [...word].some((character) => !isMark(character))).length;
}

function isMark(character) {
  return punctuation.test(character) || symbol.test(character);
}

function listed({ level, text, anchor, line }) {
  return { level, text, anchor, line };
}

export function toHtml(markdown, options) {
  const parser = parserFor(options);
  const tokens = parser.parse(markdown, {});
  const headings = [...headingsOf(tokens)];
  for (const { token, anchor } of headings) token.attrSet("id", anchor);
  return {
    html: parser.renderer.render(tokens, parser.options, {}),
    title: headings.find(({ level }) => level === 1)?.text,
    headings: headings.map(listed),
    words: wordsOf(tokens),
  };
}

export function outline(markdown) {
  return [...headingsOf(parserFor().parse(markdown, {}))].map(listed);
}

export function references(markdown) {
  const found = [];
  let line = 1; // a cell has none of its own: that of its row
  for (const { type, map, children } of parserFor().parse(markdown, {})) {
    if (map) line = map[0] + 1;
    if (type === "inline") collect(children, line, found);
  }
  return found;
}

/** Adds the links and pictures of one block's inline tokens, which begin in this line. */
function collect(tokens, line, found) {
  const open = [];
  for (const token of tokens) {
    if (token.type === "link_open") {
      const link = { href: token.attrGet("href"), text: "", picture: false, line };
      found.push(link);
      open.push(link);
    } else if (token.type === "link_close") {
      open.pop();
    } else {
      const text = textOf([token]);
      for (const link of open) link.text += text;
      if (token.type === "image") found.push({ href: token.attrGet("src"), text, picture: true, line });
      if (token.type === "softbreak" || token.type === "hardbreak") line += 1;
    }
  }
}
