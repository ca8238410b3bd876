import { randomFillSync } from 'node:crypto';

const idBytes = 16;

/** How many ids are drawn from the system at a time. */
const idsPerDraw = 256;

const drawn = Buffer.alloc(idBytes * idsPerDraw);
let used = drawn.length;

/** A fresh id of 32 hexadecimal digits. */
export function nextId(): string {
  if (used === drawn.length) {
    randomFillSync(drawn);
    used = 0;
  }
  used += idBytes;
  return drawn.toString('hex', used - idBytes, used);
}
