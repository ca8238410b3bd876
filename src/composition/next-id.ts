import { randomUUID } from 'node:crypto';

/**
 * A fresh id of 32 hexadecimal digits: the time in milliseconds, then 80 random bits. So the rows of new requests lie side
 * by side at the end of the indexes by id; wholly random ids would have every request read and write pages of its own.
 */
export function nextId(): string {
  const random = randomUUID();
  return Date.now().toString(16).padStart(12, '0') + random.slice(0, 8) + random.slice(24);
}
