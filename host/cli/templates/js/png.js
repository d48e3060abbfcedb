// A picture of bars, as PNG. Knows nothing of components.

const HEIGHT = 100;
const BAR = 8; // pixels wide, one of them a gap

/** A PNG with 8 bits of grey for each pixel, and without compression. */
export function bars(values) {
  const width = BAR * values.length;
  const rows = Array.from({ length: HEIGHT }, (_, y) => [
    0, // no filter
    ...values.flatMap((value) => [...Array(BAR - 1).fill(HEIGHT - y <= value ? 0x30 : 0xff), 0xff]),
  ]).flat();
  return new Uint8Array([
    ...[0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a],
    ...chunk("IHDR", [...u32(width), ...u32(HEIGHT), 8, 0, 0, 0, 0]),
    ...chunk("IDAT", stored(rows)),
    ...chunk("IEND", []),
  ]);
}

/** Data in zlib's format as one stored block: at most 65,535 bytes. */
function stored(data) {
  let [a, b] = [1, 0];
  for (const byte of data) {
    a = (a + byte) % 65521;
    b = (b + a) % 65521;
  }
  const length = [data.length & 0xff, data.length >> 8];
  return [0x78, 0x01, 1, ...length, ...length.map((byte) => byte ^ 0xff), ...data, ...u32(b * 65536 + a)];
}

function chunk(kind, data) {
  const named = [...kind].map((letter) => letter.charCodeAt(0)).concat(data);
  let crc = 0xffffffff;
  for (const byte of named) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return [...u32(data.length), ...named, ...u32(~crc >>> 0)];
}

function u32(number) {
  return [24, 16, 8, 0].map((shift) => (number >>> shift) & 0xff);
}
