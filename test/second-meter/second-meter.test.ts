import { setImmediate } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { TextSample } from '../../src/protocol/kept-text.ts';
import type { SampleResult } from '../../src/second-meter/instruments.ts';
import { createSecondMeter, meterUsage } from '../../src/second-meter/second-meter.ts';
import type { MeteredAnswer } from '../../src/second-meter/second-meter.ts';
import { UsageDrift, recentSamples } from '../../src/second-meter/usage-drift.ts';

/** The samples of a meter, whose tokenizer counts a token for each word. */
function createMeter(count = async (text: string) => text.split(' ').length) {
  const added: (readonly unknown[])[] = [];
  const drift = { add: (...sample: readonly unknown[]) => void added.push(sample) } as unknown as UsageDrift;
  const results: SampleResult[] = [];
  const asked: string[] = [];
  const countWhenIdle = (text: string): Promise<number> => {
    asked.push(text);
    return count(text);
  };
  return {
    meter: createSecondMeter({ countWhenIdle }, drift, (result) => results.push(result)),
    added,
    results,
    asked,
  };
}

const words = (number: number): string => Array.from({ length: number }, () => 'word').join(' ');

function textOf(text: string): TextSample {
  const sample = new TextSample();
  sample.add(text);
  return sample;
}

const answer = (
  more: Partial<MeteredAnswer> & { readonly reasoningTokens?: number } = {},
): MeteredAnswer => ({
  upstream: 'far',
  model: 'large',
  turns: [{ role: 'user', text: words(100) }],
  text: textOf(words(80)),
  hasThoughts: false,
  usage: {
    inputTokens: 130,
    cachedInputTokens: 100,
    cacheWriteTokens: 10,
    outputTokens: 200,
    reasoningTokens: more.reasoningTokens ?? 0,
    totalTokens: 330,
  },
  ...more,
});

async function settled(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await setImmediate();
}

describe('a sample compares', () => {
  test('the whole input, cached or not, with the text and the usual tokens around its turns', async () => {
    const { meter, added, results } = createMeter();
    meter.offer(answer());
    await settled();
    expect(added).toEqual([
      ['far', 'large', 'input', 130, 104],
      ['far', 'large', 'output', 200, 80],
    ]);
    expect(results).toEqual(['compared']);
  });

  test('only what is not thoughts, where the provider says how many tokens they took', async () => {
    const { meter, added } = createMeter();
    for (const hasThoughts of [true, false]) meter.offer(answer({ hasThoughts, reasoningTokens: 115 }));
    await settled();
    expect(added.filter(([, , kind]) => kind === 'output')).toEqual([
      ['far', 'large', 'output', 85, 80],
      ['far', 'large', 'output', 85, 80],
    ]);
  });

  test('the input alone where it shows thoughts and does not say that', async () => {
    const { meter, added, asked } = createMeter();
    meter.offer(answer({ hasThoughts: true }));
    await settled();
    expect(added.map(([, , kind]) => kind)).toEqual(['input']);
    expect(asked).toHaveLength(1);
  });

  test('nothing that is too short to tell two tokenizers apart', async () => {
    const { meter, added, results } = createMeter();
    meter.offer(answer({ turns: [{ role: 'user', text: words(3) }], text: textOf(words(63)) }));
    meter.offer(answer({ turns: [{ role: 'user', text: words(3) }], text: textOf(words(64)) }));
    await settled();
    expect(added).toEqual([['far', 'large', 'output', 200, 64]]);
    expect(results).toEqual(['skipped', 'compared']);
  });
});

describe('a sample is given up', () => {
  test('at once if its text is too long', () => {
    const { meter, asked, results } = createMeter();
    meter.offer(answer({ text: textOf('x'.repeat(131_073)) }));
    meter.offer(answer({ turns: [{ role: 'user', text: 'x'.repeat(262_144) }] }));
    expect([asked, results]).toEqual([[], ['skipped', 'skipped']]);
  });

  test('at once if 16 others wait, of which one is counted at a time', async () => {
    let release = (): void => {};
    const held = new Promise<number>((resolve) => (release = () => resolve(1)));
    const { meter, results, asked } = createMeter(() => held);
    for (let sample = 0; sample < 20; sample++) meter.offer(answer());
    await settled();
    expect(results).toEqual(['dropped', 'dropped', 'dropped', 'dropped']);
    expect(asked).toHaveLength(1);
    release();
    await settled();
    expect(results.filter((result) => result === 'skipped')).toHaveLength(16);
    meter.offer(answer());
    await settled();
    expect(results).toHaveLength(21);
  });

  test('at once if the others that wait have a million characters', () => {
    const { meter, results } = createMeter(() => new Promise(() => {}));
    for (let sample = 0; sample < 9; sample++) meter.offer(answer({ text: textOf('x'.repeat(131_000)) }));
    expect(results).toEqual(['dropped', 'dropped']);
  });

  test('if it can not be counted: the next one is', async () => {
    let calls = 0;
    const { meter, results } = createMeter(async () => {
      if (++calls === 1) throw new Error('the thread failed');
      return 100;
    });
    for (let sample = 0; sample < 2; sample++) meter.offer(answer());
    await settled();
    expect(results).toEqual(['failed', 'compared']);
  });
});

describe('answers are sampled', () => {
  type Stage = Parameters<typeof meterUsage>[1]['stage'];
  const { turns, text, usage } = answer();
  const recorded = (kind: 'text' | 'passthrough'): Stage =>
    ({
      stage: 'recorded',
      work: { kind, request: { turns }, received: { text, thoughts: new TextSample() } },
      attempts: { upstream: 'far', model: 'large' },
    }) as unknown as Stage;
  const finished = { kind: 'finished', reason: 'stop', rawReason: 'stop', usage } as const;

  const sampled = (result: Parameters<typeof meterUsage>[0], stage: Stage, share: number, random = 0.5) => {
    const offered: MeteredAnswer[] = [];
    meterUsage(
      result,
      { stage },
      { meter: { offer: (each) => void offered.push(each) }, share, random: () => random },
    );
    return offered;
  };

  test('in the share that is set, after they were recorded', () => {
    expect(sampled(finished, recorded('text'), 0.6)).toEqual([
      { upstream: 'far', model: 'large', turns, text, hasThoughts: false, usage },
    ]);
    expect(sampled(finished, recorded('text'), 0.5)).toEqual([]);
    expect(sampled(finished, recorded('text'), 1, 0.999)).toHaveLength(1);
    expect(sampled(finished, { stage: 'arrived' }, 1)).toEqual([]);
  });

  test('never without reported usage, unfinished, or passed through', () => {
    expect(sampled({ ...finished, usage: null }, recorded('text'), 1)).toEqual([]);
    expect(sampled({ kind: 'unexpected' }, recorded('text'), 1)).toEqual([]);
    expect(sampled(finished, recorded('passthrough'), 1)).toEqual([]);
  });
});

test('a sample of each answer gives the ratio of its upstream', async () => {
  const drift = new UsageDrift();
  const meter = createSecondMeter({ countWhenIdle: async () => 100 }, drift, () => {});
  for (let sample = 0; sample < recentSamples; sample++) {
    meter.offer(answer());
    await settled();
  }
  expect(drift.figures()).toMatchObject([
    { kind: 'input', ratio: expect.closeTo(130 / 104) as number },
    { kind: 'output', ratio: expect.closeTo(2) as number },
  ]);
});
