import { setTimeout as wait } from 'node:timers/promises';
import type { Gateway } from './gateways.ts';
import { groupNames } from './settings.ts';
import type { DrawnConfig } from './settings.ts';

/** A key of the run. `secret` is the one to use. */
export interface LiveKey {
  readonly id: string;
  readonly isPaying: boolean;
  secret: string;
}

/** What disruptions may use and change. */
export interface World {
  readonly gateways: readonly Gateway[];
  readonly keys: LiveKey[];
  /** All keys that there ever were, also those that others took the place of. */
  readonly secrets: Set<string>;
  readonly random: () => number;
  readonly drawConfig: () => DrawnConfig;
  /** Creates a key in place of one that is revoked. */
  readonly createKey: (paying: boolean) => Promise<LiveKey>;
  /** Notes what is paid in, in nano-USD. */
  readonly credit: (keyId: string, nanos: number) => void;
  /** Cuts all connections of the database; `null` where there are none. */
  readonly cutDatabase: (() => Promise<void>) | null;
  readonly faults: string[];
  readonly counts: Map<string, number>;
}

/** The longest pause between two disruptions, in milliseconds. */
const longestPauseMs = 3_000;

/** How long one may take, in milliseconds: longer than a drain and a start together. */
const longestMs = 60_000;

type Disruption = (world: World, gateway: Gateway) => Promise<void> | void;

const one = <Thing>({ random }: World, things: readonly Thing[]): Thing =>
  things[Math.floor(random() * things.length)] as Thing;

/** Asks the admin API of a gateway that may be broken at the moment: then there is no answer. */
function ask(gateway: Gateway, method: string, path: string, body?: object): Promise<unknown> {
  const late = wait(longestMs / 2, null, { ref: false });
  return Promise.race([gateway.served.ask(method, path, body).catch(() => null), late]);
}

const disruptions: Readonly<Record<string, Disruption>> = {
  reload: (world, gateway) => gateway.reload(world.drawConfig()),
  'reload of all': (world) => {
    const config = world.drawConfig();
    for (const gateway of world.gateways) gateway.reload(config);
  },
  'broken reload': (_, gateway) => gateway.reload({ server: {}, models: 3 }),
  async rotate(world, gateway) {
    const key = one(world, world.keys);
    const made = (await ask(gateway, 'POST', `/keys/${key.id}/rotate`, {
      grace: one(world, ['0s', '5s']),
    })) as {
      key?: string;
    } | null;
    if (made?.key === undefined) return;
    world.secrets.add(made.key);
    key.secret = made.key;
  },
  async revoke(world, gateway) {
    const at = Math.floor(world.random() * world.keys.length);
    const key = world.keys[at];
    if (key === undefined) return;
    await ask(gateway, 'DELETE', `/keys/${key.id}`);
    const next = await world.createKey(key.isPaying).catch(() => null);
    if (next !== null) world.keys[at] = next;
  },
  async credit(world, gateway) {
    const paying = world.keys.filter(({ isPaying }) => isPaying);
    const key = one(world, paying);
    const reference = `payment-${Math.floor(world.random() * 1e9)}`;
    // Once per reference, however often it is asked for: the answer of one may be lost.
    for (let tries = 0; tries < 20; tries++) {
      const booked = (await ask(gateway, 'POST', `/keys/${key.id}/credits`, {
        amount: '0.001',
        reference,
      })) as { error?: { code?: string } } | null;
      if (booked !== null && booked.error === undefined) return world.credit(key.id, 1_000_000);
      if (booked?.error?.code !== undefined && !/storage|overloaded|draining/.test(booked.error.code)) return;
      await wait(500);
    }
    world.faults.push(`a credit of ${key.id} could not be booked`);
  },
  async limits(world, gateway) {
    const body = one(world, [
      { concurrency: 1, queueWait: '1s' },
      { concurrency: 10, queueWait: '0s' },
      { weight: 3, tokensPerMinute: 2_000 },
      { tokensPerMinute: null, requestsPerMinute: 10_000 },
      { group: one(world, groupNames) },
      { group: null },
      { budget: { amount: '0.005', per: 'day' } },
      { budget: null },
    ]);
    await ask(gateway, 'PATCH', `/keys/${one(world, world.keys).id}`, body);
  },
  async cancel(world, gateway) {
    const running = (await ask(gateway, 'GET', '/in-flight')) as { data?: { request_id: string }[] } | null;
    const request = one(world, running?.data ?? []) as { request_id: string } | undefined;
    if (request !== undefined) await ask(gateway, 'POST', `/in-flight/${request.request_id}/cancel`);
  },
  'worker killed': (world, gateway) => gateway.killWorker(world.random),
  killed: (world, gateway) => gateway.kill(world.drawConfig(), true),
  'killed without its workers': (world, gateway) => gateway.kill(world.drawConfig(), false),
  async drained(world, gateway) {
    world.faults.push(...(await gateway.drain(world.drawConfig())));
  },
  async 'database cut'(world) {
    await world.cutDatabase?.();
  },
  async 'console stream'(world, gateway) {
    const stop = AbortSignal.timeout(Math.round(500 + world.random() * 5_000));
    await fetch(`${gateway.served.adminUrl}/admin/status`, {
      signal: stop,
      headers: { authorization: `Bearer ${gateway.served.adminToken}`, accept: 'text/event-stream' },
    })
      .then((response) => response.text())
      .catch(() => {});
  },
  async 'console pages'(_, gateway) {
    for (const path of [
      '/upstreams',
      '/shadow',
      '/groups',
      '/keys',
      '/records?limit=5',
      '/usage?by=key',
      '/ledger',
    ])
      await ask(gateway, 'GET', path);
  },
};

/** These are done one at a time for each gateway, and less often. */
const heavy = new Set(['killed', 'killed without its workers', 'drained', 'worker killed', 'database cut']);

/** Breaks and changes things at random until it is stopped; resolves when all is up again. */
export async function disrupt(world: World, stopped: AbortSignal): Promise<void> {
  const busy = new Set<Gateway>();
  const running = new Set<Promise<unknown>>();
  const names = Object.keys(disruptions);
  while (!stopped.aborted) {
    await wait(world.random() * longestPauseMs, undefined, { signal: stopped }).catch(() => {});
    const name = one(world, names);
    const gateway = one(world, world.gateways);
    const isHeavy = heavy.has(name);
    if (stopped.aborted || busy.has(gateway) || (isHeavy && world.random() < 0.4)) continue;
    world.counts.set(name, (world.counts.get(name) ?? 0) + 1);
    if (isHeavy) busy.add(gateway);
    const done = Promise.resolve(disruptions[name]?.(world, gateway));
    const late = wait(longestMs, undefined, { ref: false }).then(() => {
      throw new Error(`it took more than ${longestMs} ms at gateway ${gateway.node}`);
    });
    const work = Promise.race([done, late])
      .catch((error: unknown) => world.faults.push(`${name} at gateway ${gateway.node}: ${String(error)}`))
      .finally(() => {
        // A light one that ends during a heavy one must not let a second one begin: both would start a process.
        if (isHeavy) busy.delete(gateway);
        running.delete(work);
      });
    running.add(work);
  }
  await Promise.all(running);
}
