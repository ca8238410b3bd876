import { setTimeout as wait } from 'node:timers/promises';
import type { PostgresServer } from '../../support/postgres-server.ts';
import type { Gateway } from './gateways.ts';
import { claimSteps } from './observations.ts';
import type { ClaimStep, Observations } from './observations.ts';

/** How long a lease of a gateway lasts, in milliseconds. */
export const leaseMs = 15_000;

/** How long a pause or a cut lasts, in milliseconds: half of them some seconds at the most, half longer, also than a lease. */
const shortestMs = 500;
const someMs = 5_000;
export const longestMs = 20_000;

/** The longest time between two disturbances, in milliseconds, beside that in which a claim comes to a step. */
const mostBetweenMs = 1_500;

/** How long a claim that comes to a step is waited for, in milliseconds. */
const mostComingMs = 2_000;

/** The pause between two changes of the addresses of gateways, in milliseconds: each of them writes its own again. */
const addressMs = 100;

/** An address at which nothing listens. */
const noAddress = 'http://127.0.0.1:1';

/** How long after that each has its own address again, in milliseconds. */
const rewrittenMs = 2_000;

/** What is disturbed. */
export interface Disturbed {
  readonly gateways: readonly Gateway[];
  /** The server of their database; `null` over a file. */
  readonly server: PostgresServer | null;
  readonly observations: Observations;
  readonly random: () => number;
}

/** A kind of disturbance. One that reaches a single gateway has it as its second argument. */
interface Disturbance {
  readonly isOfAll: boolean;
  /** Whether no gateway can serve meanwhile, also where there are several. */
  readonly stopsAll?: boolean;
  readonly play: (disturbed: Disturbed, gateway: Gateway, lastsMs: number) => Promise<void>;
}

const ofAnyEngine: Readonly<Record<string, Disturbance>> = {
  killed: { isOfAll: false, play: (_, gateway) => gateway.kill() },
  'stands still': { isOfAll: false, play: (_, gateway, lastsMs) => gateway.pause(lastsMs) },
};

const ofPostgres: Readonly<Record<string, Disturbance>> = {
  ...ofAnyEngine,
  'database restarted': { isOfAll: true, stopsAll: true, play: restartDatabase },
  'database cut off': { isOfAll: false, play: cutDatabase },
  'nodes apart': {
    isOfAll: true,
    play: ({ server, observations }, _, lastsMs) => partNodes(server, observations, lastsMs),
  },
};

/** How often each kind was played, and how many questions it found in each step. */
export type Found = ReadonlyMap<string, { times: number; readonly steps: Map<ClaimStep, number> }>;

export interface Disturbances {
  readonly found: Found;
  /** How many were played. */
  readonly count: number;
  /** For how long one gateway or more could serve so far, in milliseconds. */
  readonly calmMs: number;
  /** When the last one was over, on the monotonic clock in milliseconds; `null` while one is played. */
  readonly overMs: number | null;
  /** Plays one of a kind that the seed chooses, when a claim comes to a step that it chooses; resolves when it is over. */
  playOne(): Promise<void>;
}

export function createDisturbances(disturbed: Disturbed): Disturbances {
  const { gateways, server, observations, random } = disturbed;
  const kinds = Object.entries(server === null ? ofAnyEngine : ofPostgres);
  const found = new Map(kinds.map(([kind]) => [kind, { times: 0, steps: new Map<ClaimStep, number>() }]));
  const one = <Thing>(things: readonly Thing[]): Thing =>
    things[Math.floor(random() * things.length)] as Thing;
  let count = 0;
  const startedMs = performance.now();
  let stoppedMs = 0;
  let stoppedSinceMs: number | null = null;
  let overMs: number | null = startedMs;
  return {
    found,
    get count() {
      return count;
    },
    get calmMs() {
      return (stoppedSinceMs ?? performance.now()) - startedMs - stoppedMs;
    },
    get overMs() {
      return overMs;
    },
    async playOne() {
      const [kind, { isOfAll, stopsAll, play }] = one(kinds);
      const gateway = one(gateways);
      const step = one(claimSteps);
      const lastsMs =
        random() < 0.5
          ? shortestMs + random() * (someMs - shortestMs)
          : someMs + random() * (longestMs - someMs);
      await wait(random() * mostBetweenMs);
      const process = isOfAll ? null : gateway.process;
      await observations.comesTo(step, process, mostComingMs);
      const counted = found.get(kind);
      if (counted !== undefined) {
        counted.times++;
        for (const [at, questions] of observations.countSteps(process))
          counted.steps.set(at, (counted.steps.get(at) ?? 0) + questions);
      }
      const fromMs = performance.now();
      overMs = null;
      if (stopsAll === true || gateways.length === 1) stoppedSinceMs = fromMs;
      await play(disturbed, gateway, lastsMs);
      if (stoppedSinceMs !== null) stoppedMs += performance.now() - fromMs;
      stoppedSinceMs = null;
      overMs = performance.now();
      count++;
    },
  };
}

/** Stops the server, in order or by SIGKILL, and starts it again. */
async function restartDatabase({ server, gateways, observations, random }: Disturbed): Promise<void> {
  const isKilled = random() < 0.5;
  if (isKilled) observations.noteForAll({ what: 'database killed' });
  await (isKilled ? server?.kill() : server?.stop());
  for (const { process } of gateways) observations.noteForAll({ what: 'loses database', process });
  for (const { process } of gateways) observations.noteForAll({ what: 'has database', process });
  await server?.start();
  observations.noteForAll({ what: 'database back' });
}

/** Cuts a gateway off from the database: its connections are reset and none is accepted, or nothing passes any more. */
async function cutDatabase(
  { observations, random }: Disturbed,
  { database, process }: Gateway,
  lastsMs: number,
): Promise<void> {
  if (database === null) return;
  const isSilent = random() < 0.5;
  if (isSilent) database.mode = 'stalled';
  else {
    await database.refuse();
    database.reset();
  }
  observations.noteForAll({ what: 'loses database', process });
  await wait(lastsMs);
  observations.noteForAll({ what: 'has database', process });
  // Of what was dropped nothing is made up for: such connections are of no use any more.
  database.reset();
  database.mode = 'open';
  if (!isSilent) await database.accept();
}

/** Has no gateway find another one. */
async function partNodes(
  server: PostgresServer | null,
  observations: Observations,
  lastsMs: number,
): Promise<void> {
  observations.noteForAll({ what: 'nodes apart' });
  const untilMs = performance.now() + lastsMs;
  while (performance.now() < untilMs) {
    await server?.sql(`UPDATE owners SET address = '${noAddress}'`);
    await wait(addressMs);
  }
  await wait(rewrittenMs);
  observations.noteForAll({ what: 'nodes together' });
}
