// Counting. Knows nothing of components.

/** Counts words of at least this many characters; throws a text that says what is wrong. */
export function count(text, minLength) {
  if (minLength < 1) throw "min-length is 0; the shortest word has 1 character";
  const length = (word) => [...word].length;
  const words = text.split(/\s+/).filter((word) => word !== "" && length(word) >= minLength);
  const longest = words.reduce((best, word) => (best === undefined || length(word) > length(best) ? word : best), undefined);
  const lines = text === "" ? 0 : text.replace(/\r?\n$/, "").split("\n").length;
  return { lines, words: words.length, longest };
}
