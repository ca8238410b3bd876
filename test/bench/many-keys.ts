import { keyIdOf } from '../support/filled-database.ts';
import { readScript } from '../support/script-options.ts';
import { shown, startBenchGateway } from './bench-gateway.ts';

/**
 * Measures the effect of the database's size: ten keys, then 100,000 keys and 1,000,000 records with random ids and their
 * ledger. The warm-up is printed, since the first audit runs during it. `npm run bench keys`
 */

readScript({ name: 'bench keys', options: {} });

const print = (text: string): void => void process.stdout.write(`${text}\n`);

for (const [keys, records] of [
  [10, 100],
  [100_000, 1_000_000],
] as const) {
  print(`${keys} keys, ${records} records:`);
  const gateway = await startBenchGateway({ keys, records });
  const one = (sequential: number) => gateway.load({ sequential, forget: null }, 1);
  print(`  warm-up, one at a time        ${shown(await one(1_000))}`);
  print(`  one at a time                 ${shown(await one(2_000))}`);
  const afresh = await gateway.load({ sequential: 1_000, forget: gateway.forget }, keys);
  print(`  with the key looked up afresh ${shown(afresh)}`);
  const steady = await gateway.load({ perSecond: 50, durationMs: 10_000 }, keys);
  print(`  50 a second                   ${shown(steady)}`);
  for (const filter of [
    '',
    `&key=${keyIdOf(7)}`,
    '&model=small',
    `&key=${keyIdOf(7)}&model=large`,
    `&key=${keyIdOf(7)}&model=none`,
    '&model=small&from=2023-11-14T22:15:00Z&to=2023-11-14T22:20:00Z',
  ]) {
    const times: number[] = [];
    for (let round = 0; round < 5; round++) times.push(await gateway.time(`/records?limit=200${filter}`));
    print(`  page of 200 ${filter || '(all)'}: slowest of five ${Math.max(...times).toFixed(1)} ms`);
  }
  await gateway.close();
}
