import { randomUUID } from 'node:crypto';

/** A fresh id of 32 hexadecimal digits. */
export function nextId(): string {
  return randomUUID().replaceAll('-', '');
}
