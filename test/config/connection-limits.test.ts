import { expect, test } from 'vitest';
import { connectionLimits, readDescriptorLimit } from '../../src/config/connection-limits.ts';

const unset = {};

test.each([
  [64, 8, 8],
  [1_024, 448, 64],
  [20_000, 9_936, 64],
  [1_048_576, 10_000, 64],
  [Infinity, 10_000, 64],
])(
  'with %i descriptors the public listener accepts %i connections by default, and the admin listener %i',
  (descriptors, open, admin) => {
    const limits = connectionLimits(unset, descriptors);
    expect([limits.public.maxConnections, limits.admin.maxConnections]).toEqual([open, admin]);
  },
);

test('the default limits leave the process 64 descriptors, with an upstream socket for every public connection', () => {
  for (const descriptors of [256, 1_024, 4_096, 65_536]) {
    const { public: open, admin } = connectionLimits(unset, descriptors);
    expect(descriptors - 2 * open.maxConnections - admin.maxConnections).toBeGreaterThanOrEqual(64);
  }
});

test('the config sets the limits of the public listener, but not those of the admin listener', () => {
  const { public: open, admin } = connectionLimits({ ...unset, maxConnections: 40 }, 1_024);
  expect([open, admin.maxConnections]).toEqual([{ maxConnections: 40, maxAnonymousPerAddress: 20 }, 64]);
  const given = connectionLimits({ ...unset, maxConnections: 40, maxAnonymousPerAddress: 30 }, 1_024);
  expect(given.public.maxAnonymousPerAddress).toBe(30);
});

test('of several processes on one port each has its part of the limits that are set, and descriptors of its own', () => {
  const set = { ...unset, maxConnections: 100, maxAnonymousPerAddress: 5 };
  expect(connectionLimits(set, 1_024, 3).public).toEqual({ maxConnections: 33, maxAnonymousPerAddress: 1 });
  expect(connectionLimits({ ...unset, maxConnections: 2 }, 1_024, 3).public.maxConnections).toBe(1);
  expect(connectionLimits(unset, 1_024, 3)).toEqual(connectionLimits(unset, 1_024));
});

test('the descriptor limit of this process is read from the system', () => {
  expect(readDescriptorLimit()).toBeGreaterThanOrEqual(64);
});
