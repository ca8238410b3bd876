import { randomNumbers } from '../../support/random-numbers.ts';
import { postgresPrograms, startPostgresServer } from '../../support/postgres-server.ts';
import { countOption, readScript, seedOption } from '../../support/script-options.ts';
import { postgresAbsence } from '../../support/test-postgres.ts';
import { clock } from './clock.ts';
import { database } from './database.ts';
import { failover } from './failover.ts';
import { kills } from './kills.ts';
import { limits } from './limits.ts';
import { queue } from './queue.ts';
import { pauses } from './pauses.ts';
import { restarts } from './restarts.ts';
import { upstreamLimits } from './upstream-limits.ts';
import type { Scenario, ScenarioOptions } from './scenario.ts';
import { strict } from './strict.ts';

/**
 * Loads and breaks several gateways over one PostgreSQL: limits, money and leases must hold in all of it.
 * `npm run chaos nodes -- [scenario …] --seconds 60 --outage 30 --times 3 --seed 1`
 */

/** Every scenario, and how often it breaks something if `--times` does not say so. */
const scenarios: Readonly<
  Record<string, { readonly play: Scenario; readonly times?: number; readonly needsServer?: true }>
> = {
  limits: { play: limits },
  strict: { play: strict },
  queue: { play: queue },
  kills: { play: kills, times: 30 },
  pauses: { play: pauses, times: 3 },
  restarts: { play: restarts, times: 10 },
  'upstream-limits': { play: upstreamLimits },
  database: { play: database, times: 3, needsServer: true },
  failover: { play: failover, needsServer: true },
  clock: { play: clock, times: 5 },
};

const maxShownFaults = 20;

const { parts, ...given } = readScript({
  name: 'chaos nodes',
  options: {
    seconds: countOption('how long a load takes', 60),
    outage: countOption('how long an outage takes, in seconds', 30),
    times: countOption('how often each scenario breaks something', null),
    seed: seedOption(null),
  },
  parts: Object.keys(scenarios),
});
if (postgresPrograms === null && postgresAbsence !== null) {
  process.stderr.write(`skipped: ${postgresAbsence}\n`);
  process.exit(2);
}
// Signals end the gateways and servers of the run, too, as an exit does.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));
// A server of its own has connections for it, whatever else uses that of all tests.
const server = postgresPrograms === null ? null : await startPostgresServer();

const { random, seed } = randomNumbers(given.seed);
let faulty = 0;
for (const name of parts.length > 0 ? parts : Object.keys(scenarios)) {
  const scenario = scenarios[name];
  if (scenario === undefined) continue;
  if (scenario.needsServer && postgresPrograms === null) {
    process.stdout.write(`${name}: skipped: there is no initdb in PATH or /usr/lib/postgresql/*/bin\n`);
    continue;
  }
  const options: ScenarioOptions = {
    random,
    server: server?.url(),
    seconds: given.seconds,
    outageSeconds: given.outage,
    times: given.times ?? scenario.times ?? 1,
  };
  const startedMs = performance.now();
  const { figures, faults } = await scenario.play(options);
  const seconds = Math.round((performance.now() - startedMs) / 1_000);
  process.stdout.write(`${name}: ${figures}; ${seconds} s; faults ${faults.length} (seed ${seed})\n`);
  for (const fault of faults.slice(0, maxShownFaults)) process.stdout.write(`  ${fault}\n`);
  if (faults.length > 0) faulty++;
}
await server?.remove();
process.exit(faulty === 0 ? 0 : 1);
