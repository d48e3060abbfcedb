// Where the lines of a built file come from, so that errors name them.

const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/** A statement that sets `globalThis.places`: for each line of the built file that comes from src/, its place there. */
export function places(map) {
  const { mappings, sources } = JSON.parse(map);
  const found = {};
  let source = 0;
  let sourceLine = 0;
  for (const [index, line] of mappings.split(";").entries()) {
    for (const segment of line.split(",").filter(Boolean)) {
      const [, inSource = 0, inLine = 0] = numbers(segment);
      source += inSource;
      sourceLine += inLine;
      const path = sources[source].replace("../", "");
      if (path.startsWith("src/")) found[index + 1] ??= `${path}:${sourceLine + 1}`;
    }
  }
  return `globalThis.places = ${JSON.stringify(found)};\n`;
}

/** The numbers of a segment of a source map: five bits a digit, least first, and the lowest bit is the sign. */
function numbers(segment) {
  const found = [];
  let value = 0;
  let shift = 0;
  for (const letter of segment) {
    const digit = DIGITS.indexOf(letter);
    value |= (digit & 31) << shift;
    shift += 5;
    if (digit & 32) continue;
    found.push(value & 1 ? -(value >> 1) : value >> 1);
    value = 0;
    shift = 0;
  }
  return found;
}
