import { costOf, priceFor } from '../../../src/domain/money/pricing.ts';
import { mostWithin } from '../../simulation/upstream-limiter/upstream.ts';
import type { Counted } from '../../simulation/upstream-limiter/upstream.ts';
import { readGot } from './client.ts';
import { passedPrice, price } from './scene.ts';
import type { Asked, Scene } from './scene.ts';
import type { SeenCall } from './upstreams.ts';

const minuteMs = 60_000;
const maxAttempts = 4;

/** A request's row in the database. */
export interface StoredRow {
  readonly outcome: string | null;
  readonly upstream: string;
  readonly charge: number;
  readonly upstreams: readonly string[];
}

/** The cost of tokens at the price of all models, in nano-USD. */
function cost(inputTokens: number, outputTokens: number): number {
  const tokens = { inputTokens, outputTokens, cachedInputTokens: 0, cacheWriteTokens: 0 };
  return costOf(tokens, priceFor(price, inputTokens));
}

/** What is wrong with one request. */
export function checkRequest(
  asked: Asked,
  { upstreams, onDisconnect }: Scene,
  row: StoredRow | null,
): string[] {
  const faults: string[] = [];
  const expect = (isRight: boolean, what: string): void =>
    void (isRight || faults.push(`${asked.id}: ${what}`));
  const { client, summaries, model, protocol } = asked;
  const { got } = client;
  expect(asked.isDone, 'it never ended');
  if (!asked.isDone) return faults;
  expect(got.hasLeft ? got.ends <= 1 : got.ends === 1, `${got.ends} ends`);
  expect(summaries.length === 1, `it was reported ${summaries.length} times`);
  const calls = upstreams.callsOf(asked.number).filter(({ isShadow }) => !isShadow);
  expect(calls.length <= maxAttempts, `${calls.length} attempts`);
  const story = calls
    .map((call) => `${call.upstream} ${call.behaviour} ${call.sentMs}-${call.endedMs}`)
    .join('; ');
  expect(!calls.some(({ isAfterText }) => isAfterText), `a call after the first text: ${story}`);
  const besides = calls.filter(({ beside }) => beside > 0);
  expect(
    besides.length <= (model?.hedge === undefined ? 0 : 1),
    `${besides.length} calls beside another one`,
  );
  expect(
    besides.every(({ beside }) => beside === 1),
    'more than two calls at a time',
  );
  expect(
    calls.every(({ endedMs }) => endedMs !== null),
    'a call goes on',
  );
  expect(row !== null || calls.length === 0, 'calls without a record');
  const charge = row?.charge ?? 0;
  const made = row?.upstreams ?? [];
  expect(
    made.join() === calls.map(({ upstream }) => upstream).join(),
    `the record has attempts ${made.join()}`,
  );
  expect((summaries[0]?.chargeNanos ?? 0) === charge, 'the record has another charge than the log');
  if (protocol === 'passthrough') {
    const status = calls[0]?.status ?? null;
    const isWhole = calls[0]?.isEnded === true && status !== null && status < 400;
    const most = status !== null && status < 400 ? passedPrice.request : 0;
    expect(
      charge >= (isWhole && !got.hasLeft ? passedPrice.request : 0) && charge <= most,
      `charged ${charge}`,
    );
    return faults;
  }
  const answer = readGot(protocol, got);
  if (!got.hasLeft) expect(answer !== null, 'no answer');
  const isWhole = answer?.ending === 'stop';
  const text = answer?.text ?? '';
  const winner =
    text === ''
      ? null
      : (calls.find((call) => call.text !== '' && call.text.startsWith(text) && !call.isAborted) ??
        calls.find((call) => call.text.startsWith(text)) ??
        null);
  expect(text === '' || winner !== null, `a text of no call: ${text}`);
  if (isWhole)
    expect(
      winner?.isWhole === true && text === winner.wholeText && row?.upstream === winner.upstream,
      'a cut-off answer passed for complete',
    );
  if (got.status !== null && got.status < 400) expect(isWhole, 'an answer of 200 that is not whole');
  faults.push(...checkCharge(asked, { calls, winner, isWhole, text, charge, onDisconnect, row }));
  return faults;
}

interface Charged {
  readonly calls: readonly SeenCall[];
  readonly winner: SeenCall | null;
  readonly isWhole: boolean;
  readonly text: string;
  readonly charge: number;
  readonly onDisconnect: Scene['onDisconnect'];
  readonly row: StoredRow | null;
}

/** The charging table, anew: what the upstream reported, else the texts by their size, for what the client got or caused. */
function checkCharge({ id, client, isStream, mostInput }: Asked, charged: Charged): string[] {
  const { calls, winner, isWhole, text, charge, onDisconnect } = charged;
  const wrong = (most: string): string[] => [`${id}: charged ${charge} and not ${most}`];
  const isLeaver = client.got.hasLeft && !isWhole;
  if (isLeaver) {
    const mostOutput = Math.max(
      0,
      ...calls.map((call) => Math.max(call.usage?.output ?? 0, call.text.length)),
    );
    const most = onDisconnect === 'free' || calls.length === 0 ? 0 : cost(mostInput, mostOutput);
    // It may have had its end before it left, or an answer that was whole already.
    const isLate = onDisconnect === 'free' && calls.some((call) => call.isWhole && !call.isAborted);
    return charge <= (isLate ? cost(mostInput, mostOutput) : most) ? [] : wrong(`at most ${most}`);
  }
  if (text === '' || winner === null) return charge === 0 ? [] : wrong('0: no text');
  if (!isStream && !isWhole) return charge === 0 ? [] : wrong('0: not whole');
  if (winner.usage !== null) {
    const usual = cost(winner.usage.input, winner.usage.output);
    return charge === usual ? [] : wrong(`${usual} by its usage`);
  }
  const [least, most] = [cost(1, text.length), cost(mostInput, text.length)];
  return charge >= least && charge <= most ? [] : wrong(`between ${least} and ${most} by its text`);
}

/** What each upstream counted of its limits, and what is wrong with the whole scene. */
export function checkScene(scene: Scene): string[] {
  const { settings, upstreams, limiters, waits, slots, models, asked, shadowsRunning } = scene;
  const faults = [...limiters.faults, ...waits.faults.slice(0, 3)];
  const byUpstream = Map.groupBy(upstreams.calls, ({ upstream }) => upstream);
  for (const [name, { maxInFlight, requestsPerMinute, tokensPerMinute }] of settings) {
    const calls = (byUpstream.get(name) ?? []).filter(({ arrivedMs }) => arrivedMs !== null);
    const atArrival: Counted[] = calls.map((call) => ({ atMs: call.arrivedMs ?? 0, amount: tokensOf(call) }));
    const atEnd: Counted[] = calls.map((call) => ({ atMs: call.overMs ?? 0, amount: tokensOf(call) }));
    const counted = [
      ['in flight', upstreams.mostOpen.get(name) ?? 0, maxInFlight],
      [
        'starts',
        mostWithin(
          atArrival.map(({ atMs }) => ({ atMs, amount: 1 })),
          minuteMs,
        ),
        requestsPerMinute,
      ],
      ['tokens by arrival', mostWithin(atArrival, minuteMs), tokensPerMinute],
      ['tokens by end', mostWithin(atEnd, minuteMs), tokensPerMinute],
    ] as const;
    for (const [what, most, limit] of counted)
      if (limit !== null && most > limit) faults.push(`${name} counted ${most} ${what} of ${limit}`);
  }
  for (const { upstream, inFlight, waiting } of limiters.views())
    if (inFlight + waiting > 0)
      faults.push(`${upstream} has ${inFlight} permits taken and ${waiting} waiting at the end`);
  if (limiters.waitingNow.size > 0) faults.push(`${limiters.waitingNow.size} requests wait at the end`);
  if (slots.size > 0) faults.push(`${slots.size} slots are taken at the end`);
  if (shadowsRunning > 0) faults.push(`${shadowsRunning} shadows run at the end`);
  for (const { id, routes, hedge } of models) {
    for (const { measure } of routes)
      if ((measure?.inFlight ?? 0) + (measure?.waiting ?? 0) > 0)
        faults.push(`a route of ${id} has attempts in progress`);
    const own = asked
      .filter(({ model }) => model?.id === id)
      .flatMap(({ number }) => upstreams.callsOf(number));
    const hedges = own.filter(({ isShadow, beside }) => !isShadow && beside > 0).length;
    const firsts = own.filter(({ isShadow, beside }) => !isShadow && beside === 0).length;
    if (hedge !== undefined && hedges > firsts * hedge.budget + 1e-6)
      faults.push(`${id} had ${hedges} second requests beside ${firsts}, with a budget of ${hedge.budget}`);
  }
  return faults;
}

/** What a call took by the upstream's own count: what it was sent, and what it answered. Those of passed paths are not known. */
function tokensOf({ status, usage, usual, text, isPassed }: SeenCall): number {
  if (isPassed || (status !== null && status >= 300)) return 0;
  return usual.input + (usage?.output ?? Math.min(text.length, usual.output));
}
