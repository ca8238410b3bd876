import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { costAtMost, costOf } from '../../src/domain/money/pricing.ts';
import { chargeFor } from '../../src/pipeline/money/charge.ts';
import { ReceivedAnswer } from '../../src/pipeline/attempts/received-answer.ts';
import { AttemptLog } from '../../src/pipeline/attempts/attempt-log.ts';
import type { Dialect } from '../../src/protocol/upstream/dialect.ts';
import { dialects } from '../../src/protocol/upstream/dialects.ts';
import { createReader } from '../../src/protocol/upstream/read-answer.ts';
import { modelPrice } from '../support/model-price.ts';
import { localRoute, localSource, usualSettings } from '../support/model-source.ts';
import { propertyRun } from '../support/property-run.ts';
import { plainSanitiser } from '../support/sanitiser.ts';

const price = modelPrice({
  input: 1_000_000,
  cachedInput: 100_000,
  cacheWrite: 1_250_000,
  output: 5_000_000,
});
const text = 'a short answer';
/** Our own count of the question and of the answer: a token for each character, and the turn's delimiters. */
const own = { inputTokens: 5 + 4, outputTokens: text.length };

/** A whole answer of each dialect with `text` and a usage object. */
const bodies: Readonly<Record<keyof typeof dialects, (usage: unknown) => object>> = {
  chat: (usage) => ({
    choices: [{ index: 0, message: { role: 'assistant', content: text }, finish_reason: 'stop' }],
    usage,
  }),
  responses: (usage) => ({
    status: 'completed',
    output: [{ type: 'message', content: [{ type: 'output_text', text }] }],
    usage,
  }),
  anthropic: (usage) => ({ content: [{ type: 'text', text }], stop_reason: 'end_turn', usage }),
  gemini: (usageMetadata) => ({
    candidates: [{ content: { parts: [{ text }] }, finishReason: 'STOP' }],
    usageMetadata,
  }),
};

const amount = fc.oneof(
  fc.nat(40),
  fc.nat(12_000),
  fc.constantFrom<unknown>(0, 20, 300, 320, 10_500, 10_820, -1, '7', null, 1.5, 1e300, true),
);
const some = (...names: string[]) =>
  fc.record(Object.fromEntries(names.map((name) => [name, amount])), { requiredKeys: [] });

/** Any usage object, with names of all dialects; half of the totals add up to some of the other counts. */
const anyUsage = fc
  .tuple(
    some('prompt_tokens', 'input_tokens', 'promptTokenCount', 'toolUsePromptTokenCount'),
    some('completion_tokens', 'output_tokens', 'candidatesTokenCount', 'thoughtsTokenCount'),
    some('cached_tokens', 'cache_read_input_tokens', 'prompt_cache_hit_tokens', 'cachedContentTokenCount'),
    some('cache_creation_input_tokens', 'reasoning_tokens', 'total_tokens', 'totalTokenCount'),
    some('cached_tokens', 'cache_write_tokens', 'cache_read_input_tokens'),
    some('reasoning_tokens', 'thinking_tokens'),
    fc.option(fc.array(fc.nat(20), { maxLength: 12 })),
  )
  .map(([input, output, cached, more, inputDetails, outputDetails, addUp]) => {
    const usage: Record<string, unknown> = Object.assign({}, input, output, cached, more);
    if (Object.keys(inputDetails).length > 0) {
      usage['prompt_tokens_details'] = inputDetails;
      usage['input_tokens_details'] = inputDetails;
    }
    if (Object.keys(outputDetails).length > 0) {
      usage['completion_tokens_details'] = outputDetails;
      usage['output_tokens_details'] = outputDetails;
    }
    if (addUp === null) return usage;
    const counts = countsIn(usage);
    const total = addUp.reduce((sum, index) => sum + (counts[index % (counts.length + 1)] ?? 0), 0);
    usage['total_tokens'] = total;
    usage['totalTokenCount'] = total;
    return usage;
  });

/** All usable counts in an object, at any depth. */
function countsIn(value: unknown): number[] {
  if (typeof value === 'number') return Number.isSafeInteger(value) && value >= 0 ? [value] : [];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(countsIn) : [];
}

/** The largest of the counts under these names, at any depth: what an upstream named, by whichever name. */
function most(value: unknown, ...names: string[]): number {
  if (typeof value !== 'object' || value === null) return 0;
  const found = Object.entries(value).map(([name, inner]) =>
    names.includes(name) ? Math.max(0, ...countsIn(inner)) : most(inner, ...names),
  );
  return Math.max(0, ...found);
}

/** All that was named, as if no count were a part of another one. */
function namedIn(usage: unknown): { readonly inputTokens: number; readonly outputTokens: number } {
  return {
    inputTokens:
      most(usage, 'prompt_tokens', 'input_tokens', 'promptTokenCount') +
      most(usage, 'toolUsePromptTokenCount') +
      most(
        usage,
        'cached_tokens',
        'cache_read_input_tokens',
        'prompt_cache_hit_tokens',
        'cachedContentTokenCount',
      ) +
      most(usage, 'cache_creation_input_tokens', 'cache_write_tokens'),
    outputTokens:
      most(usage, 'completion_tokens', 'output_tokens', 'candidatesTokenCount') +
      most(usage, 'thoughtsTokenCount') +
      most(usage, 'reasoning_tokens', 'thinking_tokens'),
  };
}

const uncached = { cachedInputTokens: 0, cacheWriteTokens: 0 };

async function charge(dialect: Dialect, body: object, ceiling: typeof own | null): Promise<number> {
  const reader = createReader(dialect, {
    contentType: 'application/json',
    streamAsked: false,
    finishReason: 'required',
    thoughtTag: null,
    sentTokens: 1_000,
    sanitise: plainSanitiser,
    isFast: true,
  });
  reader.push(Buffer.from(JSON.stringify(body)));
  const { deltas, ending } = reader.end();
  const received = new ReceivedAnswer();
  received.reads(reader.answer);
  received.add(deltas, 0);
  const attempts = new AttemptLog();
  attempts.begin(localSource.upstream, 'tiny', 0);
  const request = {
    model: 'small',
    turns: [{ role: 'user', text: 'hello' }],
    stream: false,
    includeUsage: false,
    shownCharge: { usageCost: false, chargeComment: false },
    maxOutputTokens: null,
    stop: [],
    promptCacheKey: null,
    responses: null,
    stripped: [],
  } as const;
  const model = { ...usualSettings, id: 'small', routes: [localRoute], price, holdTokens: 1 };
  expect(ending).toMatchObject({ kind: 'finished' });
  const { chargeNanos } = await chargeFor(
    { outcome: 'completed', usage: ending?.usage ?? null, passedStatus: null },
    {
      work: { kind: 'text', request, model, routes: [localRoute], received, ceiling },
      attempts,
      reservation: { granted: true, holdNanos: null, balanceNanos: null },
    },
    {
      balanceMode: 'soft',
      tokens: { count: async (counted) => counted.length },
      telemetry: {
        waitBegan: () => {},
        waitEnded: () => {},
        exchangeBegan: () => {},
        streamOpened: () => {},
        exchangeEnded: () => {},
        fault: () => {},
      },
    },
  );
  return chargeNanos;
}

describe.each(Object.entries(dialects))('for any usage object of %s', (name, dialect) => {
  const run = propertyRun(400);

  test('the charge is that of our own count, or at most that of all that the upstream named', async () => {
    await fc.assert(
      fc.asyncProperty(anyUsage, async (usage) => {
        const nanos = await charge(dialect, bodies[name as keyof typeof dialects](usage), null);
        const bound = Math.max(
          costOf({ ...uncached, ...own }, price),
          costAtMost({ ...uncached, ...namedIn(usage) }, price),
        );
        expect(nanos).toBeGreaterThan(0);
        expect(nanos).toBeLessThanOrEqual(bound);
      }),
      run,
    );
  });

  test('the charge is never above the ceiling of costs', async () => {
    const ceiling = { inputTokens: 400, outputTokens: 20 };
    await fc.assert(
      fc.asyncProperty(anyUsage, async (usage) => {
        const nanos = await charge(dialect, bodies[name as keyof typeof dialects](usage), ceiling);
        expect(nanos).toBeLessThanOrEqual(costAtMost({ ...uncached, ...ceiling }, price));
      }),
      run,
    );
  });
});
