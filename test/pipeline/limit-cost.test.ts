import fc from 'fast-check';
import { expect, test } from 'vitest';
import { namedPrompt } from '../../src/domain/money/hidden-prompt.ts';
import type { HiddenPrompt } from '../../src/domain/money/hidden-prompt.ts';
import { holdFor, mostInputTokens, unknownHiddenTokens } from '../../src/domain/money/hold-estimate.ts';
import { costOf, priceFor } from '../../src/domain/money/pricing.ts';
import type { ModelPrice } from '../../src/domain/money/pricing.ts';
import { AttemptLog } from '../../src/pipeline/attempts/attempt-log.ts';
import { chargeFor } from '../../src/pipeline/money/charge.ts';
import { limitCost } from '../../src/pipeline/money/limit-cost.ts';
import { ReceivedAnswer } from '../../src/pipeline/attempts/received-answer.ts';
import { toUpstreamRequest } from '../../src/pipeline/attempts/try-routes.ts';
import type { TextWork } from '../../src/pipeline/stages.ts';
import { responsesDialect } from '../../src/protocol/upstream/responses.ts';
import { isRefusal } from '../../src/shared/errors.ts';
import { formatUsd } from '../../src/shared/money.ts';
import { modelPrice } from '../support/model-price.ts';
import { localRoute, usualSettings } from '../support/model-source.ts';
import { propertyRun } from '../support/property-run.ts';

interface Case {
  readonly price: ModelPrice;
  readonly text: string;
  readonly maxOutputTokens: number | null;
  readonly holdTokens: number;
  readonly isResponses: boolean;
  readonly hidden?: HiddenPrompt;
}

function routed({ price, text, maxOutputTokens, holdTokens, isResponses, hidden }: Case): TextWork {
  const dialect = isResponses ? responsesDialect : localRoute.dialect;
  const routes = [{ ...localRoute, dialect, ...(hidden === undefined ? {} : { hidden }) }];
  const request = {
    model: 'small',
    turns: [{ role: 'user', text }],
    stream: true,
    includeUsage: false,
    shownCharge: { usageCost: false, chargeComment: false },
    maxOutputTokens,
    stop: [],
    promptCacheKey: null,
    responses: null,
    stripped: [],
  } as const;
  const model = { ...usualSettings, id: 'small', routes, price, holdTokens };
  const received = new ReceivedAnswer();
  return { kind: 'text', request, model, routes, received, ceiling: null };
}

const amount = fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 10 }), fc.nat({ max: 30_000_000_000 }));
const line = fc.record({
  input: amount,
  cachedInput: amount,
  cacheWrite: amount,
  output: amount,
  request: fc.oneof(fc.constant(0), fc.nat({ max: 2_000_000 })),
});
const price: fc.Arbitrary<ModelPrice> = fc
  .tuple(line, fc.option(fc.record({ line, inputTokens: fc.integer({ min: 1, max: 12_000 }) })))
  .map(([usual, above]) =>
    Object.assign(usual, {
      above: above === null ? null : Object.assign(above.line, { inputTokens: above.inputTokens }),
    }),
  );
const cases: fc.Arbitrary<Case> = fc.record({
  price,
  text: fc.oneof(
    fc.string({ unit: 'grapheme', maxLength: 40 }),
    fc.constantFrom('é'.repeat(3_000), 'x'.repeat(9_000)),
  ),
  maxOutputTokens: fc.option(fc.integer({ min: 1, max: 100_000 })),
  holdTokens: fc.integer({ min: 1, max: 5_000 }),
  isResponses: fc.boolean(),
});
/** A share, in thousandths. */
const share = fc.nat({ max: 1_000 });

/** What an answer used: shares of the most input, of its cached part, of its written part and of the most output. */
type Shares = readonly [inputs: number, cached: number, written: number, outputs: number];

/** What is wrong with the decision on a request, `null` if nothing is; and whether it may be sent. */
function judge(asked: Case, percent: number, [inputs, cached, written, outputs]: Shares) {
  const turns = [{ role: 'user' as const, text: asked.text }];
  const least = asked.isResponses ? 16 : 1;
  const wanted = Math.max(asked.maxOutputTokens ?? asked.holdTokens, least);
  const boundOf = (tokens: number) =>
    holdFor({ turns, maxOutputTokens: tokens }, asked.price, { holdTokens: 0, strict: true });
  // Around what the request may cost, and exactly that.
  const ceiling = percent === 0 ? boundOf(wanted) : Math.floor((boundOf(wanted) * percent) / 200);
  const after = limitCost(routed(asked), { maxCost: formatUsd(ceiling) });
  if (isRefusal(after)) {
    const needed = asked.maxOutputTokens === null ? Math.min(wanted, 16) : wanted;
    const fault = boundOf(needed) > ceiling ? null : 'refused, although it could not cost more';
    return { isSent: false, fault: after.code === 'max_cost_exceeded' ? fault : after.code };
  }
  const { maxOutputTokens: cap } = toUpstreamRequest(after, false);
  if (asked.maxOutputTokens !== null && Math.max(cap ?? 0, least) !== wanted)
    return { isSent: true, fault: `the client's cap is ${cap}` };
  const inputTokens = Math.floor((mostInputTokens(turns) * inputs) / 1_000);
  const cachedInputTokens = Math.floor((inputTokens * cached) / 1_000);
  const cacheWriteTokens = Math.floor(((inputTokens - cachedInputTokens) * written) / 1_000);
  const outputTokens = Math.floor((Math.max(cap ?? 1_000_000, least) * outputs) / 1_000);
  const used = { inputTokens, cachedInputTokens, cacheWriteTokens, outputTokens };
  const cost = costOf(used, priceFor(asked.price, inputTokens));
  return { isSent: true, fault: cost <= ceiling ? null : `costs ${cost} instead of ${ceiling}` };
}

test('a request with a ceiling never costs more at an upstream that honours the cap, and none is refused that could not', () => {
  let [sent, refused] = [0, 0];
  fc.assert(
    fc.property(
      cases,
      fc.nat({ max: 400 }),
      fc.tuple(share, share, share, share),
      (asked, percent, shares) => {
        const { isSent, fault } = judge(asked, percent, shares);
        if (isSent) sent++;
        else refused++;
        expect(fault).toBeNull();
      },
    ),
    propertyRun(3_000),
  );
  expect(sent).toBeGreaterThan(300);
  expect(refused).toBeGreaterThan(300);
});

test('where output is free, a longer prompt than was sent is paid only as far as the ceiling pays for all of it', () => {
  const text = 'x'.repeat(100);
  const asked: Case = {
    price: modelPrice({ input: 1_000_000, output: 0 }),
    text,
    maxOutputTokens: null,
    holdTokens: 1_024,
    isResponses: false,
    hidden: namedPrompt(10),
  };
  const turns = [{ role: 'user' as const, text }];
  const [sent, longest] = [mostInputTokens(turns, 10), mostInputTokens(turns, unknownHiddenTokens)];
  const ceilingOf = (nanos: number) => {
    const after = limitCost(routed(asked), { maxCost: formatUsd(nanos) });
    return isRefusal(after) ? after.code : after.ceiling;
  };
  expect(ceilingOf(longest)).toEqual({ inputTokens: longest, outputTokens: Infinity });
  expect(ceilingOf(longest - 1)).toEqual({ inputTokens: sent, outputTokens: Infinity });
  expect(ceilingOf(sent - 1)).toBe('max_cost_exceeded');
});

test('our own count never charges more than a ceiling, however wrong it is', async () => {
  const each = fc.constantFrom(0, 1, 100);
  await fc.assert(
    fc.asyncProperty(cases, fc.nat({ max: 300 }), each, async (asked, percent, perCharacter) => {
      const turns = [{ role: 'user' as const, text: asked.text }];
      const wanted = asked.maxOutputTokens ?? asked.holdTokens;
      const bound = holdFor({ turns, maxOutputTokens: wanted }, asked.price, { holdTokens: 0, strict: true });
      const ceiling = Math.floor((bound * percent) / 100);
      const after = limitCost(routed(asked), { maxCost: formatUsd(ceiling) });
      if (isRefusal(after)) return;
      after.received.add(['x'.repeat(20_000)], 0);
      const {
        chargeNanos,
        usage,
        price: applied,
      } = await chargeFor(
        { outcome: 'completed', usage: null, passedStatus: null },
        {
          work: after,
          attempts: new AttemptLog(),
          reservation: { granted: true, holdNanos: null, balanceNanos: null },
        },
        {
          balanceMode: 'soft',
          tokens: { count: async (text) => text.length * perCharacter },
          telemetry: {
            waitBegan: () => {},
            waitEnded: () => {},
            exchangeBegan: () => {},
            streamOpened: () => {},
            exchangeEnded: () => {},
            fault: (message) => expect.unreachable(message),
          },
        },
      );
      expect(chargeNanos).toBeLessThanOrEqual(ceiling);
      // What is recorded explains the charge, so the ledger can be verified.
      expect(usage === null || applied === null ? null : costOf(usage, applied)).toBe(chargeNanos);
    }),
    propertyRun(1_000),
  );
});

test('without the header a request stays as it is', () => {
  const asked = { text: 'x', maxOutputTokens: null, holdTokens: 10, isResponses: false };
  const before = routed({ price: modelPrice({ input: 1, output: 1 }), ...asked });
  expect(limitCost(before, { maxCost: undefined })).toBe(before);
});

test('a cost beyond the largest amount is no reason to raise the header, which takes no more', () => {
  const asked = { text: 'x', maxOutputTokens: 5_000_000, holdTokens: 10, isResponses: false };
  const dear = routed({ price: modelPrice({ input: 1, output: 9e15 }), ...asked });
  for (const maxCost of ['9007199.25', '9007199.254740991']) {
    const refused = limitCost(dear, { maxCost });
    expect(isRefusal(refused) && refused.message).toMatch(
      /^This request may cost 9007199 USD or more, .* Leave the header out, or cap its output at \d+ tokens\.$/,
    );
  }
  const unread = limitCost(dear, { maxCost: '9007199.3' });
  expect(isRefusal(unread) && unread.message).toMatch(/with at most nine decimals and up to 9007199\.$/);
});
