import { expect, test } from 'vitest';
import { playPolicies } from '../chaos/policies/play.ts';
import { propertyRun } from '../support/property-run.ts';

const requests = Number(process.env['POLICY_REQUESTS'] ?? 1_500);

test(`every answer, charge, permit and wait is right under random policies, limits and upstreams (${requests} requests)`, async () => {
  const { seed } = propertyRun();
  const { faults, figures } = await playPolicies(seed, requests, 50);
  expect({ seed, faults }).toEqual({ seed, faults: [] });
  // A run without these would show nothing.
  const { calls, permits, waits, left, shadows, 'answered whole': whole } = figures;
  expect(
    Math.min(...[calls, permits, waits, left, shadows, whole].map((figure) => figure ?? 0)),
  ).toBeGreaterThan(0);
}, 60_000);
