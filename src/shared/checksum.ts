import { crc32 } from 'node:zlib';

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';

/** The length of every checksum, in characters: 62 to the 6th is more than 32 bits. */
export const checksumLength = 6;

/** The CRC-32 of a text in base 62, six characters long. It finds slips and torn writes; it proves nothing. */
export function checksumOf(text: string): string {
  let rest = crc32(text);
  let written = '';
  while (written.length < checksumLength) {
    written = alphabet.charAt(rest % alphabet.length) + written;
    rest = Math.floor(rest / alphabet.length);
  }
  return written;
}
