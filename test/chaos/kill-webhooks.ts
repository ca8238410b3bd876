import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { systemClock } from '../../src/composition/clock.ts';
import type { Engine } from '../../src/storage/engine.ts';
import { createPostgresEngine } from '../../src/storage/postgres/engine.ts';
import { eventually } from '../support/eventually.ts';
import { randomNumbers } from '../support/random-numbers.ts';
import { countOption, readScript, seedOption } from '../support/script-options.ts';
import { sayTexts, startUpstream } from '../support/scripted-upstream.ts';
import { openThreadedEngine } from '../support/test-engine.ts';
import { createDatabase } from '../support/test-postgres.ts';
import { startReceiver } from '../support/webhook-receiver.ts';
import type { WebhookReceiver } from '../support/webhook-receiver.ts';

/**
 * Loads a gateway whose keys fall below their low balance again and again, before a receiver that fails at random, and kills
 * it with SIGKILL at random moments, on SQLite and on PostgreSQL. At the end each crossing that the ledger shows has exactly
 * one event, the receiver has handled exactly these, each once by its id, and those of a key in their order.
 * `npm run chaos webhooks -- --kills 40 --seed 1`
 */

const { kills, seed: given } = readScript({
  name: 'chaos webhooks',
  options: { kills: countOption('kills on each engine', 40), seed: seedOption(null) },
});
const keyCount = 40;
const lowNanos = 10e9;
/** The longest time from a start to its kill, in milliseconds. */
const maxLifeMs = 1_200;
/** Every so many lives one is so long that it delivers on PostgreSQL, where the lease of the killed process must be over. */
const longLifeEvery = 13;
const longLifeMs = 40_000;
const patienceMs = 240_000;

interface Served {
  readonly url: string;
  readonly adminUrl: string;
  readonly adminToken: string;
}

interface Payer {
  readonly id: string;
  readonly secret: string;
}

const { random, seed } = randomNumbers(given);
const upstream = await startUpstream();
upstream.play(sayTexts(['a ', 'b']));
let failed = false;
for (const kind of ['SQLite', 'PostgreSQL'] as const) await runOn(kind);
await upstream.close();
if (failed) process.exit(1);

async function runOn(kind: 'SQLite' | 'PostgreSQL'): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'textgate-chaos-webhooks-'));
  const server = kind === 'PostgreSQL' ? await createDatabase() : null;
  const place = server?.url ?? join(folder, 'textgate.db');
  const receiver = await startReceiver();
  const begin = async (): Promise<{ child: ChildProcess; served: Served }> => {
    const settings = [upstream.url, place, join(folder, 'spool'), receiver.url, receiver.secret];
    const child = fork(join(import.meta.dirname, 'webhooks-child.ts'), settings);
    const [served] = (await once(child, 'message')) as [Served];
    return { child, served };
  };
  let payers: readonly Payer[] | null = null;
  receiver.play(() => {
    const drawn = random();
    return drawn < 0.04 ? 500 : drawn < 0.07 ? 'cut' : drawn < 0.1 ? 'lose' : 'accept';
  });
  for (let kill = 0; kill < kills; kill++) {
    const { child, served } = await begin();
    payers ??= await makePayers(served);
    const isLong = kind === 'PostgreSQL' && kill % longLifeEvery === longLifeEvery - 1;
    await loadUntilKilled(child, served, payers, isLong ? longLifeMs : random() * maxLifeMs);
  }
  receiver.play('accept');
  const { child, served } = await begin();
  const isDelivered = async (): Promise<boolean> => {
    await wait(200);
    const page = (await askAdmin(served, 'GET', '/webhooks')) as { data: [{ waiting: number }] };
    return page.data[0].waiting === 0;
  };
  // On PostgreSQL it delivers once the lease of the process before is over, which shows by its figures.
  await eventually(
    'it delivers',
    async () => {
      await wait(200);
      const metrics = await (await fetch(`${served.adminUrl}/metrics`)).text();
      return /^textgate_outbox_oldest_age_seconds \d/m.test(metrics);
    },
    patienceMs,
  );
  // New events are routed within a second.
  await wait(3_000);
  await eventually('everything is delivered', isDelivered, patienceMs);
  const ended = once(child, 'close');
  child.kill('SIGKILL');
  await ended;
  const engine =
    server === null ? openThreadedEngine(place) : createPostgresEngine({ url: place, clock: systemClock });
  await engine.ready;
  const { crossings, faults } = await check(engine, receiver);
  await engine.close();
  await receiver.close();
  await server?.drop();
  rmSync(folder, { recursive: true });
  failed ||= faults.length > 0;
  process.stdout.write(
    `${kind}: ${kills} kills, ${crossings} crossings, ${receiver.requests} deliveries, of which ${receiver.repeated} were ` +
      `repeated, faults ${faults.length} (seed ${seed})\n${faults.slice(0, 10).join('\n')}`,
  );
}

async function makePayers(served: Served): Promise<readonly Payer[]> {
  const payers: Payer[] = [];
  for (let at = 0; at < keyCount; at++) {
    const made = (await askAdmin(served, 'POST', '/keys', { name: `payer ${at}`, balance: '12' })) as {
      id: string;
      key: string;
    };
    payers.push({ id: made.id, secret: made.key });
  }
  return payers;
}

async function askAdmin({ adminUrl, adminToken }: Served, method: string, path: string, body?: object) {
  const response = await fetch(`${adminUrl}/admin${path}`, {
    method,
    headers: { authorization: `Bearer ${adminToken}`, 'content-type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return response.json();
}

/** Spends and credits each key by turns, a few keys at a time, until the process is dead. */
async function loadUntilKilled(
  child: ChildProcess,
  served: Served,
  payers: readonly Payer[],
  lifeMs: number,
): Promise<void> {
  const killed = once(child, 'close');
  setTimeout(() => child.kill('SIGKILL'), lifeMs);
  const worker = async (first: number): Promise<void> => {
    for (let at = first; child.exitCode === null && child.signalCode === null; at += 4) {
      const payer = payers[at % payers.length];
      if (payer !== undefined) await cross(served, payer).catch(() => wait(1));
    }
  };
  await Promise.all([killed, ...[0, 1, 2, 3].map(worker)]);
}

async function cross(served: Served, { id, secret }: Payer): Promise<void> {
  const response = await fetch(`${served.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'small', messages: [{ role: 'user', content: 'x' }] }),
  });
  await response.text();
  const reference = `credit ${random()}`;
  await askAdmin(served, 'POST', `/keys/${id}/credits`, { amount: '7', reference });
}

/** Compares the events with the crossings that the ledger shows, and with what the receiver has handled. */
async function check(
  engine: Engine,
  receiver: WebhookReceiver,
): Promise<{ readonly crossings: number; readonly faults: readonly string[] }> {
  const [postings = [], events = []] = await engine.read([
    { sql: 'SELECT key_id, number, delta FROM ledger ORDER BY key_id, number', values: [] },
    { sql: `SELECT id, name FROM outbox WHERE type = 'balance.low'`, values: [] },
  ]);
  const expected = new Set<string>();
  let [keyId, sum] = ['', 0];
  for (const row of postings) {
    if (row['key_id'] !== keyId) [keyId, sum] = [String(row['key_id']), 0];
    const next = sum + Number(row['delta']);
    if (sum >= lowNanos && next < lowNanos) expected.add(`balance.low:${keyId}:${String(row['number'])}`);
    sum = next;
  }
  const names = new Map(events.map(({ id, name }) => [String(id), String(name)]));
  const faults = [...receiver.faults];
  const found = new Set(names.values());
  for (const name of expected) if (!found.has(name)) faults.push(`no event ${name}`);
  for (const name of found) if (!expected.has(name)) faults.push(`an event without a crossing: ${name}`);
  const last = new Map<string, number>();
  for (const { id, type } of receiver.handled) {
    if (type !== 'balance.low') continue;
    const name = names.get(id);
    if (name === undefined) {
      faults.push(`${id} was handled, and is no event`);
      continue;
    }
    names.delete(id);
    const [, key = '', number] = name.split(':');
    if (Number(number) <= (last.get(key) ?? 0)) faults.push(`${name} was handled after a later one`);
    last.set(key, Number(number));
  }
  for (const name of names.values()) faults.push(`${name} was never handled`);
  return { crossings: expected.size, faults };
}
