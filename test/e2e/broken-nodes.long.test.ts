import { describe, expect, test } from 'vitest';
import { database } from '../chaos/nodes/database.ts';
import { kills } from '../chaos/nodes/kills.ts';
import { limits } from '../chaos/nodes/limits.ts';
import { queue } from '../chaos/nodes/queue.ts';
import { restarts } from '../chaos/nodes/restarts.ts';
import { upstreamLimits } from '../chaos/nodes/upstream-limits.ts';
import { strict } from '../chaos/nodes/strict.ts';
import type { Scenario } from '../chaos/nodes/scenario.ts';
import { postgresPrograms } from '../support/postgres-server.ts';
import { postgresAbsence } from '../support/test-postgres.ts';
import { randomNumbers } from '../support/random-numbers.ts';

/** `npm run chaos nodes` plays the same scenarios for longer. */
async function expectNoFaults(
  play: Scenario,
  options: { readonly seconds?: number; readonly times?: number },
): Promise<void> {
  const { random, seed } = randomNumbers();
  const { figures, faults } = await play({ random, seconds: 2, outageSeconds: 2, times: 1, ...options });
  expect(faults, `${figures} (FC_SEED=${seed})`).toEqual([]);
}

/** What a scenario may take on a busy machine, in milliseconds. */
const slow = 120_000;

describe.skipIf(postgresAbsence !== null)('two gateways over one PostgreSQL', () => {
  test(
    'keep the limits of keys together, under random load',
    () => expectNoFaults(limits, { seconds: 2 }),
    slow,
  );

  test(
    'let exactly as many of many requests at once pass as the balance has holds for',
    () => expectNoFaults(strict, {}),
    slow,
  );

  test('serve the requests that wait for one slot in their order', () => expectNoFaults(queue, {}), slow);

  test(
    'are restarted one after the other without an answer that is cut or a record that is lost',
    () => expectNoFaults(restarts, { times: 2 }),
    slow,
  );
});

// At once: both mostly wait, for a lease to run out and for an outage to end.
describe.concurrent('two gateways', () => {
  test.skipIf(postgresAbsence !== null)(
    'stay right when one of them is killed: its slots are free after its lease, and every answer is charged once',
    () => expectNoFaults(kills, { times: 1 }),
    slow,
  );

  test.skipIf(postgresAbsence !== null)(
    'keep the limit of an upstream together, and the one that is left has all of it after the lease of the other',
    () => expectNoFaults(upstreamLimits, { seconds: 3 }),
    slow,
  );

  test.skipIf(postgresPrograms === null)(
    'finish what runs and settle it once, when their PostgreSQL is stopped or killed, or its answers are lost',
    () => expectNoFaults(database, { times: 2, seconds: 4 }),
    slow,
  );
});
