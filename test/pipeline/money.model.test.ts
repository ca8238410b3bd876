import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { holdFor } from '../../src/domain/money/hold-estimate.ts';
import { costOf, free, noTokens } from '../../src/domain/money/pricing.ts';
import type { ModelPrice } from '../../src/domain/money/pricing.ts';
import { verifyLedger } from '../../src/operations/verify-ledger.ts';
import { endAllLeases } from '../../src/storage/leases.ts';
import { modelPrice } from '../support/model-price.ts';
import { openPipeline } from '../support/pipeline-harness.ts';
import type { DrivenRequest, PipelineHarness } from '../support/pipeline-harness.ts';
import { propertyRun } from '../support/property-run.ts';
import { settledRecord } from '../support/stored-rows.ts';

/** Runs per database, so that checking every account stays cheap. */
const runsPerDatabase = 200;
const holdTokens = 10;
const question = 'four';
const prices: readonly ModelPrice[] = [
  modelPrice({ input: 3_000_000, cachedInput: 1_000_000, output: 7_000_000 }),
  free,
  modelPrice({ input: 1, output: 1 }),
];

/** The expected account of one key, computed by independent rules. */
interface Model {
  balance: number | null;
  held: number;
  spent: number;
  revoked: boolean;
  price: ModelPrice;
  readonly running: Open[];
  readonly over: string[];
}

interface Open {
  readonly request: DrivenRequest;
  readonly price: ModelPrice;
  /** What is set aside for it; 0 once its record was closed as lost. */
  hold: number | null;
  isLost: boolean;
  readonly stream: boolean;
  text: string;
  thoughts: string;
  /** The last counts of input and output above 0, the largest ones, and whether the last report had both. */
  usage: { readonly input: number; readonly output: number } | null;
  mostInput: number;
  mostOutput: number;
  isWhole: boolean;
  /** Whether a report came after the last text or thoughts. */
  fresh: boolean;
}

interface Real {
  readonly pipeline: PipelineHarness;
  readonly keyId: string;
}

type Command = fc.AsyncCommand<Model, Real>;

const frame = (choice: object | null, extra: object = {}) =>
  `data: ${JSON.stringify({ choices: choice === null ? [] : [{ index: 0, ...choice }], ...extra })}\n\n`;

/** Ends a request in the model: releases its hold and charges its known usage. */
function close(model: Model, open: Open, isPaid: boolean): void {
  const cost = isPaid ? costFor(open) : 0;
  model.running.splice(model.running.indexOf(open), 1);
  model.over.push(open.request.id);
  model.held -= open.hold ?? 0;
  model.spent += cost;
  if (model.balance !== null) model.balance += (open.hold ?? 0) - cost;
}

/** The upstream's count if it is plausible, else one token per character. */
function costFor(open: Open): number {
  const { price, text, thoughts } = open;
  const { input, output } = isKnown(open)
    ? open.usage
    : { input: question.length + 4, output: text.length + thoughts.length };
  return costOf({ ...noTokens, inputTokens: input, outputTokens: output }, price);
}

function isKnown(open: Open): open is Open & { usage: NonNullable<Open['usage']> } {
  const { usage: said, mostInput, mostOutput, isWhole, fresh, text, thoughts } = open;
  if (said === null || said.input === 0 || said.output < mostOutput) return false;
  if (said.input < mostInput && !isWhole) return false;
  return text + thoughts === '' || (said.output > 0 && fresh);
}

/** After every command, at every committed point, the account equals the model (I1, I2). */
async function compare(model: Model, { pipeline, keyId }: Real): Promise<void> {
  await pipeline.quiet();
  const account = (await pipeline.store.accounts([keyId])).get(keyId);
  expect(account).toEqual({ balanceNanos: model.balance, heldNanos: model.held, spentNanos: model.spent });
}

function command(
  name: string,
  check: (model: Model) => boolean,
  run: (model: Model, real: Real) => Promise<void>,
): Command {
  return {
    check,
    run: async (model, real) => {
      await run(model, real);
      await compare(model, real);
    },
    toString: () => name,
  };
}

const pick = <Item>(items: readonly Item[], index: number): Item => items[index % items.length] as Item;
const someRun = ({ running }: Model) => running.length > 0;

const topUp = (nanos: number, reference: number): Command =>
  command(
    `topUp(${nanos}, ${reference})`,
    () => true,
    async (model, { pipeline, keyId }) => {
      const { result } = await pipeline.store.credit({ keyId, nanos, reference: String(reference) });
      if (result !== 'booked') return;
      model.balance = (model.balance ?? 0) + nanos;
      pipeline.change(keyId, { hasBalance: true });
    },
  );

const start = (stream: boolean, cap: number | null): Command =>
  command(
    `start(${stream}, ${cap})`,
    () => true,
    async (model, { pipeline, keyId }) => {
      const body = { model: 'm', stream, messages: [{ role: 'user', content: question }], max_tokens: cap };
      const request = await pipeline.start(keyId, body);
      const turns = [{ role: 'user' as const, text: question }];
      const wanted = holdFor({ turns, maxOutputTokens: cap }, model.price, { holdTokens, strict: false });
      const isPoor = model.balance !== null && wanted > 0 && model.balance < 1;
      if (model.revoked || isPoor) {
        await request.done;
        expect(request.sent.status).toBe(model.revoked ? 401 : 402);
        expect(request.call).toBeNull();
        return;
      }
      const hold = model.balance === null ? null : Math.max(0, Math.min(wanted, model.balance));
      if (model.balance !== null) model.balance -= hold ?? 0;
      model.held += hold ?? 0;
      model.running.push({
        request,
        price: model.price,
        hold,
        isLost: false,
        stream,
        text: '',
        thoughts: '',
        usage: null,
        mostInput: 0,
        mostOutput: 0,
        isWhole: false,
        fresh: false,
      });
    },
  );

const delta = (index: number, text: string): Command =>
  command(`delta(${index}, ${text})`, someRun, async ({ running }) => {
    const open = pick(running, index);
    open.request.call?.give(frame({ delta: { content: text } }));
    open.text += text;
    open.fresh = false;
  });

const think = (index: number, text: string): Command =>
  command(`think(${index}, ${text})`, someRun, async ({ running }) => {
    const open = pick(running, index);
    open.request.call?.give(frame({ delta: { reasoning_content: text } }));
    open.thoughts += text;
    open.fresh = false;
  });

const usage = (index: number, input: number, output: number): Command =>
  command(`usage(${index}, ${input}, ${output})`, someRun, async ({ running }) => {
    const open = pick(running, index);
    const counts = { prompt_tokens: input, completion_tokens: output, total_tokens: input + output };
    open.request.call?.give(frame(null, { usage: counts }));
    open.mostInput = Math.max(open.mostInput, input);
    open.mostOutput = Math.max(open.mostOutput, output);
    if (input > 0 || output > 0) open.isWhole = input > 0 && output > 0;
    open.usage = { input: input || (open.usage?.input ?? 0), output: output || (open.usage?.output ?? 0) };
    open.fresh ||= output > 0;
  });

const complete = (index: number, reason: string): Command =>
  command(`complete(${index}, ${reason})`, someRun, async (model) => {
    const open = pick(model.running, index);
    open.request.call?.give(`${frame({ delta: { content: '' }, finish_reason: reason })}data: [DONE]\n\n`);
    await open.request.done;
    expect(open.request.sent.text).toMatch(open.stream ? /\[DONE\]/ : /chat\.completion/);
    close(model, open, true);
  });

/** A stream is charged once text was sent. */
const wentOut = ({ stream, text }: Open): boolean => stream && text !== '';

/** A client that disconnects pays for thoughts, too, and for the input of a whole answer. */
const wasBegun = ({ stream, text, thoughts }: Open): boolean => !stream || text + thoughts !== '';

/** Breaks an answer off in some way; `isPaid` is whether it is charged. */
const breakOff = (
  index: number,
  how: string,
  act: (open: Open, real: Real) => void,
  isPaid: (open: Open) => boolean = wentOut,
): Command =>
  command(`${how}(${index})`, someRun, async (model, real) => {
    const open = pick(model.running, index);
    act(open, real);
    await open.request.done;
    expect(open.request.sent.text).not.toMatch(/\[DONE\]|"object":"chat\.completion"/);
    close(model, open, isPaid(open));
  });

const settleTwice = (index: number): Command =>
  command(
    `settleTwice(${index})`,
    ({ over }) => over.length > 0,
    async ({ over }, { pipeline }) => {
      const again = pipeline.store.settle({
        ...settledRecord,
        requestId: pick(over, index),
        chargeNanos: 1_000_000,
      });
      await expect(again).rejects.toThrow('no open record');
    },
  );

/**
 * The process is taken for dead: its lease is ended and its open records are closed as lost. The requests still run, and
 * their settlements overtake the closing later.
 */
const loseLease = (): Command =>
  command(
    'loseLease',
    () => true,
    async (model, { pipeline }) => {
      await pipeline.engine.run([endAllLeases]);
      const unsettled = model.running.filter(({ isLost }) => !isLost);
      expect(await pipeline.store.closeLostRecords()).toBe(unsettled.length);
      for (const open of unsettled) {
        open.isLost = true;
        model.held -= open.hold ?? 0;
        if (model.balance !== null) model.balance += open.hold ?? 0;
        open.hold &&= 0;
      }
    },
  );

const changePrice = (index: number): Command =>
  command(
    `changePrice(${index})`,
    () => true,
    async (model, { pipeline }) => {
      model.price = pick(prices, index);
      pipeline.price = model.price;
    },
  );

const revoke = (): Command =>
  command(
    'revoke',
    () => true,
    async (model, { pipeline, keyId }) => {
      model.revoked = true;
      pipeline.change(keyId, { revokedAtMs: 1 });
    },
  );

const index = fc.nat({ max: 9 });
const words = fc.constantFrom('a', 'bc', 'def');
const commands = fc.commands(
  [
    fc
      .tuple(fc.integer({ min: 1, max: 200 }), fc.nat({ max: 3 }))
      .map(([nanos, reference]) => topUp(nanos, reference)),
    fc.tuple(fc.boolean(), fc.constantFrom(null, 1, 5)).map(([stream, cap]) => start(stream, cap)),
    fc.tuple(fc.boolean(), fc.constantFrom(null, 1, 5)).map(([stream, cap]) => start(stream, cap)),
    fc.tuple(index, words).map(([at, text]) => delta(at, text)),
    fc.tuple(index, words).map(([at, text]) => think(at, text)),
    fc
      .tuple(index, fc.nat({ max: 20 }), fc.nat({ max: 20 }))
      .map(([at, input, output]) => usage(at, input, output)),
    fc.tuple(index, fc.constantFrom('stop', 'length')).map(([at, reason]) => complete(at, reason)),
    index.map((at) => breakOff(at, 'leave', ({ request }) => request.leave(), wasBegun)),
    index.map((at) =>
      breakOff(
        at,
        'cancel',
        ({ request }, { pipeline }) => void pipeline.ports.inFlight.cancel(request.id),
        wasBegun,
      ),
    ),
    index.map((at) =>
      breakOff(at, 'upstreamError', ({ request }) =>
        request.call?.give('data: {"error":{"message":"no"}}\n\n'),
      ),
    ),
    index.map((at) => breakOff(at, 'badJson', ({ request }) => request.call?.give('data: {"ch\n\n'))),
    index.map((at) =>
      breakOff(at, 'connectionBroken', ({ request }) =>
        request.call?.give({ kind: 'fault', fault: 'broken' }),
      ),
    ),
    index.map((at) =>
      breakOff(at, 'stall', ({ request }) => request.call?.give({ kind: 'fault', fault: 'idle_timeout' })),
    ),
    index.map((at) => breakOff(at, 'truncated', ({ request }) => request.call?.give(null))),
    index.map((at) => settleTwice(at)),
    fc.constant(loseLease()),
    index.map((at) => changePrice(at)),
    fc.constant(revoke()),
  ],
  { maxCommands: 30, size: 'max' },
);

describe('money', () => {
  test('is exact at every point, for any events in any order', async () => {
    const { seed, numRuns: runs } = propertyRun(800);
    for (let done = 0; done < runs; done += runsPerDatabase) {
      const pipeline = await openPipeline(pick(prices, 0), holdTokens);
      await fc.assert(
        fc.asyncProperty(commands, fc.constantFrom(null, 0, 50, 500), async (sequence, balance) => {
          pipeline.price = pick(prices, 0);
          const keyId = await pipeline.addKey(balance);
          const model: Model = {
            balance,
            held: 0,
            spent: 0,
            revoked: false,
            price: pipeline.price,
            running: [],
            over: [],
          };
          await fc.asyncModelRun(() => ({ model, real: { pipeline, keyId } }), sequence);
          for (const { request } of model.running) request.leave();
          await Promise.all(model.running.map(({ request }) => request.done));
          expect((await pipeline.store.accounts([keyId])).get(keyId)?.heldNanos).toBe(0);
          expect((await pipeline.ports.inFlight.count([keyId])).get(keyId)).toBe(0);
        }),
        { numRuns: runsPerDatabase, seed: seed + done },
      );
      expect(await verifyLedger(pipeline.books)).toMatchObject({ imbalanceNanos: 0, faults: [] });
      await pipeline.close();
    }
    process.stdout.write(`money: ${runs} runs (seed ${seed}), differences: 0\n`);
  }, 240_000);
});
