// Blocks of Notion as Markdown, and plain Markdown as blocks. Knows no requests.

// The most characters of one piece of rich text, by Notion's bounds.
const TEXT_MAX = 2000;

// The beginnings of lines that stand for a type of block.
const LINES = [
  [/^### /, "heading_3"],
  [/^## /, "heading_2"],
  [/^# /, "heading_1"],
  [/^[-*] \[[ xX]\] /, "to_do"],
  [/^[-*] /, "bulleted_list_item"],
  [/^\d{1,9}\. /, "numbered_list_item"],
  [/^> ?/, "quote"],
];

const MARKS = { heading_1: "# ", heading_2: "## ", heading_3: "### ", bulleted_list_item: "- ", numbered_list_item: "1. ", quote: "> " };

/** Markdown of blocks; those under a block are indented. */
export function toMarkdown(blocks) {
  const lines = [];
  write(blocks, "", lines);
  return lines.join("\n");
}

function write(blocks, indent, lines) {
  for (const block of blocks) {
    for (const line of lineOf(block).split("\n")) lines.push(indent + line);
    if (block.children) write(block.children, `${indent}  `, lines);
  }
}

function lineOf({ type, ...block }) {
  const held = block[type] ?? {};
  const text = (held.rich_text ?? []).map(({ plain_text: plain, href }) => (href ? `[${plain}](${href})` : plain)).join("");
  switch (type) {
    case "to_do":
      return `- [${held.checked ? "x" : " "}] ${text}`;
    case "code":
      return `\`\`\`${held.language === "plain text" ? "" : (held.language ?? "")}\n${text}\n\`\`\``;
    case "divider":
      return "---";
    case "child_page":
    case "child_database":
      return `[${type === "child_page" ? "page" : "database"}: ${held.title ?? ""}]`;
    case "bookmark":
    case "embed":
      return held.url ?? "";
    case "equation":
      return `$$${held.expression ?? ""}$$`;
    default:
      // A type that has text is text, one that has none is named.
      return held.rich_text ? (MARKS[type] ?? "") + text : `[${type}]`;
  }
}

/** Blocks of Markdown, one for each line that is not blank, and one for each fence. */
export function fromMarkdown(markdown) {
  const blocks = [];
  const lines = markdown.replace(/\r\n?/g, "\n").split("\n");
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at];
    if (line.startsWith("```")) {
      const closing = lines.indexOf("```", at + 1);
      const end = closing < 0 ? lines.length : closing;
      blocks.push(block("code", lines.slice(at + 1, end).join("\n"), { language: "plain text" }));
      at = end;
    } else if (/^(---|\*\*\*)\s*$/.test(line)) {
      blocks.push({ object: "block", type: "divider", divider: {} });
    } else if (line.trim()) {
      blocks.push(ofLine(line));
    }
  }
  return blocks;
}

function ofLine(line) {
  const [mark, type] = LINES.find(([mark]) => mark.test(line)) ?? [/^/, "paragraph"];
  const text = line.replace(mark, "");
  return block(type, text, type === "to_do" ? { checked: /^. \[[xX]/.test(line) } : {});
}

function block(type, text, more) {
  return { object: "block", type, [type]: { rich_text: richText(text), ...more } };
}

/** Pieces of rich text; no character is cut in two. */
function richText(text) {
  const letters = [...text];
  const pieces = [];
  let piece = "";
  for (const letter of letters) {
    if (piece.length + letter.length > TEXT_MAX) {
      pieces.push(piece);
      piece = "";
    }
    piece += letter;
  }
  if (piece) pieces.push(piece);
  return pieces.map((content) => ({ type: "text", text: { content } }));
}
