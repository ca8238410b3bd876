import { setTimeout as wait } from 'node:timers/promises';
import { mintKey, mintSecret } from '../../../src/domain/keys/api-key.ts';
import { startNumberedUpstream } from '../../chaos/numbered-upstream.ts';
import { seededNumbers } from '../../support/random-numbers.ts';
import { metricsOf, metricSum } from '../gateway-state.ts';
import { forEachOf } from '../for-each-of.ts';
import type { Section } from '../section.ts';
import { startSubject } from '../subject.ts';

const guesses = 20_000;
/** Fewer at a time than the look-ups that are made at once: none of them is put off. */
const atATime = 8;
/** Whose times are compared: a guess that begins as a valid key must not be told from others by how long it takes. */
const timedKinds = ['with another last byte', 'unknown'] as const;
/** The share of the slowest times that are left out: a pause of the machine says nothing of a key. */
const slowest = 0.05;
/** How long the key that expires is valid, in milliseconds. */
const lifeMs = 2_000;

export const section: Section = {
  name: 'guessing',
  title: 'Guessed keys',
  about:
    'Keys that are missing, malformed, unknown, revoked and expired, in both protocols and on all routes. Each is a 401, ' +
    'with one body that does not tell them apart, and none adds a series to the metrics.',
  async run({ seed, scale }) {
    const random = seededNumbers(seed);
    const upstream = await startNumberedUpstream();
    const subject = await startSubject({ name: 'guessing', upstreamUrl: upstream.url });
    const { served } = subject;
    const faults: string[] = [];
    const bytes = (): Buffer => Buffer.from(Array.from({ length: 44 }, () => Math.floor(random() * 256)));
    const create = (more: object): Promise<unknown> =>
      served.ask('POST', '/keys', { name: `guessed ${random()}`, ...more });
    const revoked = (await create({})) as { id: string; key: string };
    await served.ask('DELETE', `/keys/${revoked.id}`);
    const expired = (await create({ expiresAt: new Date(Date.now() + lifeMs).toISOString() })) as {
      key: string;
    };
    await wait(lifeMs);
    if (!revoked.key || !expired.key) throw new Error('no key was created');

    const kinds: Readonly<Record<string, () => string | null>> = {
      missing: () => null,
      empty: () => '',
      'without Bearer': () => subject.key,
      malformed: () => `Bearer sk-${random().toString(36)}`,
      'with a wrong checksum': () => `Bearer ${mintKey(bytes()).secret.slice(0, -6)}000000`,
      unknown: () => `Bearer ${mintKey(bytes()).secret}`,
      'almost a valid one': () =>
        `Bearer ${subject.key.slice(0, -1)}${subject.key.endsWith('a') ? 'b' : 'a'}`,
      'with another last byte': () => `Bearer ${withOtherEnd(subject.key, 1 + Math.floor(random() * 255))}`,
      revoked: () => `Bearer ${revoked.key}`,
      expired: () => `Bearer ${expired.key}`,
    };
    const routes = [
      'POST /v1/chat/completions',
      'POST /v1/responses',
      'GET /v1/models',
      'GET /v1/key',
      'GET /v1/models/small',
    ];
    const bodies = new Map<string, string>();
    const durations = new Map<string, number[]>(timedKinds.map((kind) => [kind, []]));
    const guess = async (_: unknown, index: number): Promise<void> => {
      const [kind = '', keyOf] = Object.entries(kinds)[index % Object.keys(kinds).length] ?? [];
      const [method = '', path = ''] = (routes[Math.floor(random() * routes.length)] ?? '').split(' ');
      const authorization = keyOf?.() ?? null;
      const startMs = performance.now();
      const response = await fetch(served.url + path, {
        method,
        headers: { 'content-type': 'application/json', ...(authorization === null ? {} : { authorization }) },
        ...(method === 'POST' ? { body: '{"model":"small"}' } : {}),
      });
      const body = await response.text();
      durations.get(kind)?.push(performance.now() - startMs);
      bodies.set(body, kind);
      if (response.status !== 401)
        faults.push(`a key ${kind} on ${path} is answered with ${response.status}`);
    };
    const count = Math.ceil(guesses * scale);
    const all = Array.from({ length: count });
    await forEachOf(all.slice(0, 200), atATime, guess);
    const before = metricSeries(await metricsOf(served));
    await forEachOf(all.slice(200), atATime, guess);
    const metrics = await metricsOf(served);
    const more = metricSeries(metrics) - before;
    if (more > 0) faults.push(`${more} series were added to the metrics`);
    if (bodies.size !== 1)
      faults.push(`the bodies differ: ${[...bodies].map(([body, kind]) => `${kind}: ${body}`).join('; ')}`);
    if (upstream.served.size > 0) faults.push('a guess has reached the upstream');
    faults.push(...(await subject.finish()));
    upstream.close();
    return {
      cases: count,
      facts: [
        ['kinds of keys', Object.keys(kinds).length],
        ['different bodies', bodies.size],
        ['series added to the metrics', more],
        [
          'Welch’s t of the times, a key with another last byte against an unknown one (4.5 would tell them apart)',
          welchT(...timedKinds.map((kind) => durations.get(kind) ?? [])).toFixed(2),
        ],
        ['requests that were put off', metricSum(metrics, 'textgate_limited_total')],
      ],
      faults,
    };
  },
};

/** A key whose last secret byte is changed by these bits; its checksum is right, so it is looked up. */
function withOtherEnd(key: string, bits: number): string {
  const [, name = '', secret = ''] = /^sk-tg-(.{12})-(.{43})/.exec(key) ?? [];
  const bytes = Buffer.from(secret, 'base64url');
  bytes.writeUInt8(bytes.readUInt8(bytes.length - 1) ^ bits, bytes.length - 1);
  return mintSecret(`key_${name}`, bytes);
}

/** Welch's t of two samples without their slowest. */
function welchT(first: readonly number[] = [], second: readonly number[] = []): number {
  const [a, b] = [first, second].map((times) => {
    const kept = times.toSorted((x, y) => x - y).slice(0, Math.ceil(times.length * (1 - slowest)));
    const mean = kept.reduce((sum, time) => sum + time, 0) / kept.length;
    const squares = kept.reduce((sum, time) => sum + (time - mean) ** 2, 0);
    return { mean, share: squares / (kept.length - 1) / kept.length };
  }) as [{ mean: number; share: number }, { mean: number; share: number }];
  return (a.mean - b.mean) / Math.sqrt(a.share + b.share);
}

function metricSeries(metrics: string): number {
  return metrics.split('\n').filter((line) => line.startsWith('textgate_')).length;
}
