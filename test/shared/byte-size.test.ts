import { expect, test } from 'vitest';
import { parseByteSize } from '../../src/shared/byte-size.ts';

test.each([
  ['0B', 0],
  ['512B', 512],
  ['64KiB', 65_536],
  ['1MiB', 1_048_576],
  ['2GiB', 2_147_483_648],
  [' 1 MiB ', 1_048_576],
])('%j is %i bytes', (text, bytes) => {
  expect(parseByteSize(text)).toBe(bytes);
});

test.each(['', '5', 'KiB', '1.5MiB', '-1B', '1KB', '1kb', '1kib', '1M', '1TiB', '1MiB1B'])(
  '%j is no size',
  (text) => {
    expect(parseByteSize(text)).toBeNull();
  },
);
