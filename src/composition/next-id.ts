import { randomFillSync } from 'node:crypto';

/** Random bytes of an id, and how many ids are drawn from the system at a time. */
const randomBytes = 10;
const idsPerDraw = 256;

/** Digits of the milliseconds since 1970, which last until the year 10889. */
const timeDigits = 12;

const drawn = Buffer.alloc(randomBytes * idsPerDraw);
let used = drawn.length;

/**
 * A fresh id of 32 hexadecimal digits: a time in milliseconds since 1970, then 80 random bits. So the rows of new
 * requests lie side by side at the end of the indexes by id; wholly random ids would have every request read and write pages
 * of its own.
 */
export function nextId(nowMs = Date.now()): string {
  if (used === drawn.length) {
    randomFillSync(drawn);
    used = 0;
  }
  used += randomBytes;
  return (
    Math.floor(nowMs).toString(16).padStart(timeDigits, '0') + drawn.toString('hex', used - randomBytes, used)
  );
}
