import { expect, test } from 'vitest';
import { connectionLimits, readDescriptorLimit } from '../../src/config/connection-limits.ts';

const unset = { host: '', port: 0, maxBody: 0, drain: 0 };

test.each([
  [64, 8, 8],
  [1_024, 448, 64],
  [20_000, 9_936, 64],
  [1_048_576, 10_000, 64],
  [Infinity, 10_000, 64],
])(
  'of %i descriptors the public listener takes %i connections by default and the admin listener %i',
  (descriptors, open, admin) => {
    const limits = connectionLimits(unset, descriptors);
    expect([limits.public.maxConnections, limits.admin.maxConnections]).toEqual([open, admin]);
  },
);

test('a public connection, its upstream socket and the admin listener leave the process descriptors of its own', () => {
  for (const descriptors of [256, 1_024, 4_096, 65_536]) {
    const { public: open, admin } = connectionLimits(unset, descriptors);
    expect(descriptors - 2 * open.maxConnections - admin.maxConnections).toBeGreaterThanOrEqual(64);
  }
});

test('the config decides for the public listener, and never for the admin listener', () => {
  const { public: open, admin } = connectionLimits({ ...unset, maxConnections: 40 }, 1_024);
  expect([open, admin.maxConnections]).toEqual([{ maxConnections: 40, maxAnonymousPerAddress: 20 }, 64]);
  const given = connectionLimits({ ...unset, maxConnections: 40, maxAnonymousPerAddress: 30 }, 1_024);
  expect(given.public.maxAnonymousPerAddress).toBe(30);
});

test('the limit of this process is read from the system', () => {
  expect(readDescriptorLimit()).toBeGreaterThanOrEqual(64);
});
