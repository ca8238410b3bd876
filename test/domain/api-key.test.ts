import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { keyEntropyBytes, keyPattern, mintKey } from '../../src/domain/api-key.ts';
import { propertyRun } from '../support/property-run.ts';

const entropy = fc.uint8Array({ minLength: keyEntropyBytes, maxLength: keyEntropyBytes });

describe('a key', () => {
  test('always looks like a key, and its id is its public part', () => {
    fc.assert(
      fc.property(entropy, (bytes) => {
        const { id, secret } = mintKey(bytes);
        expect(secret).toMatch(keyPattern);
        expect(secret.startsWith(`sk-tg-${id.replace(/^key_/, '')}-`)).toBe(true);
        expect(id).toMatch(/^key_[A-Za-z0-9]{12}$/);
      }),
      propertyRun(),
    );
  });

  test('carries all 256 bits of its secret', () => {
    fc.assert(
      fc.property(entropy, (bytes) => {
        const written = mintKey(bytes).secret.slice('sk-tg-123456789012-'.length);
        expect(new Uint8Array(Buffer.from(written, 'base64url'))).toEqual(bytes.subarray(12));
      }),
      propertyRun(),
    );
  });

  test('shows nothing of its secret in its id', () => {
    const same = new Uint8Array(keyEntropyBytes);
    const other = same.map((byte, index) => (index < 12 ? byte : 255));
    expect(mintKey(same).id).toBe(mintKey(other).id);
    expect(mintKey(same).secret).not.toBe(mintKey(other).secret);
  });

  test.each([0, keyEntropyBytes - 1, keyEntropyBytes + 1])('is not made of %i random bytes', (count) => {
    expect(() => mintKey(new Uint8Array(count))).toThrow(RangeError);
  });
});

describe('the pattern of a key', () => {
  const { secret } = mintKey(new Uint8Array(keyEntropyBytes));

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
    `${secret.slice(0, -1)}=`,
  ])('does not fit %j', (presented) => {
    expect(presented).not.toMatch(keyPattern);
    expect(secret).toMatch(keyPattern);
  });
});
