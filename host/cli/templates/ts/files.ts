// The component's exports: the functions of wit/tool.wit, with their names in camelCase.

import { getDirectories } from "wasi:filesystem/preopens@0.2.12";
import type { Descriptor } from "wasi:filesystem/types@0.2.12";

import { explained } from "./errors";
import { checked } from "./names";

const BLOCK_BYTES = 64n * 1024n;

export const notes = explained({
  // A string that is thrown becomes the error of the `result`.
  readNote(name: string): string {
    const path = `${checked(name)}.txt`;
    return tried(`the note ${name} cannot be read`, () => {
      const file = folder().openAt({}, path, {}, { read: true });
      const blocks: Uint8Array[] = [];
      for (let at = 0n, ended = false; !ended; ) {
        const [block, end] = file.read(BLOCK_BYTES, at);
        blocks.push(block);
        at += BigInt(block.length);
        ended = end || block.length === 0;
      }
      return text(blocks);
    });
  },

  writeNote(name: string, text: string): number {
    const path = `${checked(name)}.txt`;
    const bytes = new TextEncoder().encode(text);
    return tried(`the note ${name} cannot be written`, () => {
      const file = folder().openAt({}, path, { create: true, truncate: true }, { write: true });
      for (let at = 0; at < bytes.length; ) at += Number(file.write(bytes.subarray(at), BigInt(at)));
      return bytes.length;
    });
  },
});

/** The folder that toolcell.toml mounts at /notes. */
function folder(): Descriptor {
  const mounted = getDirectories().find(([, path]) => path === "/notes");
  if (!mounted) throw "toolcell.toml mounts no /notes";
  return mounted[0];
}

function text(blocks: Uint8Array[]): string {
  const decoder = new TextDecoder();
  return blocks.map((block) => decoder.decode(block, { stream: true })).join("") + decoder.decode();
}

/** Says what failed, and the reason: a code of WASI, such as `no-entry`. */
function tried<T>(failed: string, run: () => T): T {
  try {
    return run();
  } catch (problem: any) {
    throw `${failed}: ${problem?.payload ?? problem}`;
  }
}
