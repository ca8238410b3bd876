import { crc32 } from 'node:zlib';

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';

/** The length of a checksum in characters: 62^6 exceeds 2^32. */
export const checksumLength = 6;

/** The CRC-32 of a text as six base-62 digits. It detects typing errors and torn writes, not forgery. */
export function checksumOf(text: string): string {
  let rest = crc32(text);
  let written = '';
  while (written.length < checksumLength) {
    written = alphabet.charAt(rest % alphabet.length) + written;
    rest = Math.floor(rest / alphabet.length);
  }
  return written;
}
