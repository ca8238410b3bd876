import { countOption, oneOf, readScript, seedOption } from '../support/script-options.ts';
import { createDatabase } from '../support/test-postgres.ts';
import { shown, startBenchGateway } from './bench-gateway.ts';
import type { LoadResult } from './child-load.ts';

/**
 * Measures what holders who read their lists without a pause cost the clients that pay: a steady load alone, and beside them,
 * in turns. Exits with 1 when p50 or p99 of the turns in the middle are further apart than the bound.
 * `npm run bench lists -- --engine postgres`
 */
const options = readScript({
  name: 'bench lists',
  options: {
    engine: oneOf('the storage engine', ['sqlite', 'postgres']),
    holders: countOption('holders who read', 20),
    'per-second': countOption('paying requests in each second', 50),
    seconds: countOption('how long each turn takes', 10),
    rounds: countOption('how often both are measured', 5),
    records: countOption('records in the database', 100_000),
    seed: seedOption(33),
  },
});
const { engine, holders, seconds, rounds, records, seed } = options;

/** How much slower clients may be beside holders who read. */
const maxRatio = 1.3;

/** The keys of the load are the first ones, those of the holders the last ones. */
const payingKeys = 100;
const print = (text: string): void => void process.stdout.write(`${text}\n`);
const middle = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;

const database = engine === 'postgres' ? await createDatabase() : null;
const gateway = await startBenchGateway({
  keys: payingKeys + holders,
  records,
  ...(database === null ? {} : { postgresUrl: database.url }),
});
const load = { perSecond: options['per-second'], durationMs: seconds * 1_000 };
const measure = (): Promise<LoadResult> => gateway.load(load, payingKeys);

print(`${engine}, ${holders} holders, ${records} records, seed ${seed}`);
print(`  warm-up: ${shown(await measure())}`);
const [alone, beside]: [LoadResult[], LoadResult[]] = [[], []];
for (let round = 0; round < rounds; round++) {
  const first = await measure();
  print(`  alone:   ${shown(first)}`);
  const stop = gateway.readLists({ firstKey: payingKeys, holders, seed: seed + round });
  const second = await measure();
  const counts = await stop();
  print(`  beside:  ${shown(second)}`);
  print(
    `           ${Object.entries(counts)
      .map(([status, count]) => `${count} lists were answered ${status}`)
      .join(', ')}`,
  );
  alone.push(first);
  beside.push(second);
}
await gateway.close();
await database?.drop();
const failed = [...alone, ...beside].flatMap(({ failures }) => Object.values(failures)).length;
const ratio = (read: (result: LoadResult) => number): number =>
  middle(beside.map(read)) / middle(alone.map(read));
const [p50, p99] = [ratio(({ medianMs }) => medianMs), ratio(({ p99Ms }) => p99Ms)];
print(
  `beside holders p50 is ${p50.toFixed(2)} x, p99 ${p99.toFixed(2)} x (bound: ${maxRatio} x); ${failed} kinds of failures`,
);
if (p50 > maxRatio || p99 > maxRatio || failed > 0) process.exitCode = 1;
