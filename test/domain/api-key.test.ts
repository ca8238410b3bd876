import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isWellFormed, keyEntropyBytes, mintKey, mintSecret } from '../../src/domain/keys/api-key.ts';
import { propertyRun } from '../support/property-run.ts';

const entropy = fc.uint8Array({ minLength: keyEntropyBytes, maxLength: keyEntropyBytes });

describe('a key', () => {
  test('always has the form of a key, and its id is its public part', () => {
    fc.assert(
      fc.property(entropy, (bytes) => {
        const { id, secret } = mintKey(bytes);
        expect(isWellFormed(secret)).toBe(true);
        expect(secret.startsWith(`sk-tg-${id.replace(/^key_/, '')}-`)).toBe(true);
        expect(id).toMatch(/^key_[A-Za-z0-9]{12}$/);
      }),
      propertyRun(),
    );
  });

  test('carries all 256 bits of its secret', () => {
    fc.assert(
      fc.property(entropy, (bytes) => {
        const written = mintKey(bytes).secret.slice('sk-tg-123456789012-'.length, -6);
        expect(new Uint8Array(Buffer.from(written, 'base64url'))).toEqual(bytes.subarray(12));
      }),
      propertyRun(),
    );
  });

  test('reveals nothing of its secret in its id', () => {
    const same = new Uint8Array(keyEntropyBytes);
    const other = same.map((byte, index) => (index < 12 ? byte : 255));
    expect(mintKey(same).id).toBe(mintKey(other).id);
    expect(mintKey(same).secret).not.toBe(mintKey(other).secret);
  });

  test.each([0, keyEntropyBytes - 1, keyEntropyBytes + 1])('is not made from %i random bytes', (count) => {
    expect(() => mintKey(new Uint8Array(count))).toThrow(RangeError);
  });
});

describe('the form of a key', () => {
  const { id, secret } = mintKey(new Uint8Array(keyEntropyBytes));
  const withoutChecksum = secret.slice(0, -6);

  test.each([
    '',
    'sk-tg-',
    ` ${secret}`,
    `${secret}\n`,
    `${secret}A`,
    secret.slice(0, -1),
    secret.toUpperCase(),
    secret.replace('sk-tg', 'sk-xx'),
    secret.replace('sk-tg-A', 'sk-tg-_'),
    `${withoutChecksum.slice(0, -1)}=`,
    `${withoutChecksum}AAAAAA`,
  ])('refuses %j', (presented) => {
    expect(isWellFormed(presented)).toBe(false);
    expect(isWellFormed(secret)).toBe(true);
  });

  test('accepts a key issued before keys had a checksum', () => {
    expect(withoutChecksum).toMatch(/^sk-tg-[A-Za-z0-9]{12}-[A-Za-z0-9_-]{43}$/);
    expect(isWellFormed(withoutChecksum)).toBe(true);
  });

  test('excludes a key with any one character changed', () => {
    fc.assert(
      fc.property(
        entropy,
        fc.nat({ max: 67 }),
        fc.constantFrom('A', 'Z', 'a', 'z', '0', '9', '_', '-'),
        (bytes, at, other) => {
          const { secret: issued } = mintKey(bytes);
          const changed = issued.slice(0, at) + other + issued.slice(at + 1);
          expect(isWellFormed(changed)).toBe(changed === issued);
        },
      ),
      propertyRun(),
    );
  });

  test('is the same for a rotated secret', () => {
    expect(isWellFormed(mintSecret(id, new Uint8Array(32).fill(7)))).toBe(true);
  });
});
