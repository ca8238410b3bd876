import { postgresPrograms, startPostgresServer } from '../../support/postgres-server.ts';
import { factor, onOff, readScript, seedOption } from '../../support/script-options.ts';
import { playEverything } from './play.ts';

/**
 * Mixes all features, clients, behaviours of upstreams and disruptions against real processes:
 * `npm run chaos everything -- --minutes 2 --seed 1`, with `--sqlite` one gateway over a file. Exits with 1 on a fault.
 */

const maxShown = 20;

const {
  minutes,
  seed: given,
  sqlite,
  keep,
} = readScript({
  name: 'chaos everything',
  options: {
    minutes: factor('how long the load lasts', 2),
    seed: seedOption(null),
    sqlite: onOff('one gateway over a file in place of two over PostgreSQL'),
    keep: onOff('keeps the folder with the configs and logs'),
  },
});
const seed = given ?? Date.now() % 2 ** 31;
if (!sqlite && postgresPrograms === null) {
  process.stderr.write(
    'skipped: there is no initdb in PATH or /usr/lib/postgresql/*/bin; --sqlite needs none\n',
  );
  process.exit(2);
}
// Signals end the gateways and servers of the run, too, as an exit does.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));
const server = sqlite ? null : await startPostgresServer();
const { faults, figures } = await playEverything({
  seed,
  minutes,
  server: server?.url() ?? null,
  keep,
});
await server?.remove();
const shown = Object.entries(figures).map(([name, figure]) => `  ${name}: ${figure}\n`);
process.stdout.write(`seed ${seed}${sqlite ? ', sqlite' : ''}\n${shown.join('')}`);
for (const fault of faults.slice(0, maxShown)) process.stdout.write(`FAULT: ${fault}\n`);
process.stdout.write(`${faults.length} faults\n`);
process.exit(faults.length === 0 ? 0 : 1);
