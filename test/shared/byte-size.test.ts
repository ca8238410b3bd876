import { expect, test } from 'vitest';
import { formatByteSize, parseByteSize } from '../../src/shared/byte-size.ts';

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

test.each(['', '5', 'KiB', '1.5MiB', '-1B', '1KB', '1kb', '1kib', '1M', '1TiB', '1MiB1B', '9999999999GiB'])(
  '%j is no size',
  (text) => {
    expect(parseByteSize(text)).toBeNull();
  },
);

test.each([
  [0, '0B'],
  [512, '512B'],
  [1_024, '1KiB'],
  [1_536, '1536B'],
  [1_048_576, '1MiB'],
  [3_221_225_472, '3GiB'],
])('%i bytes are written as %s', (bytes, written) => {
  expect(formatByteSize(bytes)).toBe(written);
});
