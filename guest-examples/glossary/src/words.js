// The words and what they mean. Imports nothing of the component, so that tests need none.

export const SCHEME = "term:///";

const WORDS = new Map([
  ["component", "A WebAssembly program with typed imports and exports, which a host links."],
  ["fuel", "What a call may compute, counted in instructions of WebAssembly."],
  ["grant", "A rule of the manifest that lets a tool reach something."],
  ["manifest", "The file that says which components serve, and what each may do."],
  ["sandbox", "The walls around a call: it reaches what it is granted, and nothing else."],
]);

/** Words that begin as what is typed. */
export const beginning = (typed) => [...WORDS.keys()].filter((word) => word.startsWith(typed.toLowerCase()));

/** What a word means; undefined where it is none of the glossary's. */
export const meaning = (word) => WORDS.get(word.toLowerCase());

/** What stands at an address; undefined where nothing does. */
export function read(uri) {
  const word = decodeURIComponent(uri.slice(SCHEME.length));
  if (word !== "") return meaning(word);
  return [...WORDS].map(([word, said]) => `${word}: ${said}\n`).join("");
}
