// Counting. Knows nothing of components.

/** Counts words of at least this many characters; throws a text that says what is wrong. */
export function count(text: string, minLength: number): { lines: number; words: number; longest?: string } {
  if (minLength < 1) throw "min-length is 0; the shortest word has 1 character";
  const length = (word: string) => [...word].length;
  const words = text.split(/\s+/).filter((word) => word !== "" && length(word) >= minLength);
  const longer = (best: string | undefined, word: string) => (best === undefined || length(word) > length(best) ? word : best);
  const lines = text === "" ? 0 : text.replace(/\r?\n$/, "").split("\n").length;
  return { lines, words: words.length, longest: words.reduce(longer, undefined as string | undefined) };
}
