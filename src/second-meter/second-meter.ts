import type { Config } from '../config/schema/schema.ts';
import { questionOf, tokensOfTurns } from '../domain/money/hold-estimate.ts';
import type { IdleTokenCounter } from '../domain/ports/tokens.ts';
import type { Exchange } from '../pipeline/exchange.ts';
import type { SettledObserver } from '../pipeline/ports.ts';
import type { ExchangeResult } from '../pipeline/results.ts';
import type { TextSample } from '../protocol/kept-text.ts';
import type { TextTurn, Usage } from '../protocol/text.ts';
import type { Metrics } from '../telemetry/metrics/metrics.ts';
import { meterInstruments } from './instruments.ts';
import type { SampleResult } from './instruments.ts';
import { UsageDrift } from './usage-drift.ts';

/** How many samples may wait for their count; further ones are dropped. */
const maxWaiting = 16;

/** The size of the texts of samples that may wait, in UTF-16 code units; further ones are dropped. */
const maxWaitingChars = 1_048_576;

/** The largest text of a sample, in UTF-16 code units: a longer one says no more, and takes longer to count. */
const maxTextChars = 131_072;

/**
 * With how many counted tokens a text is compared: below that, what the provider adds to every request, such as its own
 * prompt, is more than the difference of two tokenizers.
 */
const leastTokens = 64;

/** A finished answer, and the usage that its upstream reported. */
export interface MeteredAnswer {
  readonly upstream: string;
  /** The model's name there. */
  readonly model: string;
  readonly turns: readonly TextTurn[];
  readonly text: TextSample;
  /** Whether thoughts were received. */
  readonly hasThoughts: boolean;
  readonly usage: Usage;
}

/** Counts samples of answers whose usage the upstream reported, and compares. */
interface SecondMeter {
  /** Takes a sample, or drops it. Returns at once, and never throws. */
  offer(answer: MeteredAnswer): void;
}

/** Makes the meter of a process: samples are counted one after the other, while no request waits for a count. */
export function createSecondMeter(
  tokens: IdleTokenCounter,
  drift: UsageDrift,
  report: (result: SampleResult) => void,
): SecondMeter {
  const waiting: MeteredAnswer[] = [];
  let waitingChars = 0;
  let isRunning = false;

  const run = async (): Promise<void> => {
    isRunning = true;
    for (let answer = waiting[0]; answer !== undefined; answer = waiting[0]) {
      const result = await compare(answer, tokens, drift).catch(() => 'failed' as const);
      waiting.shift();
      waitingChars -= charsOf(answer);
      report(result);
    }
    isRunning = false;
  };
  return {
    offer(answer) {
      const chars = charsOf(answer);
      if (answer.text.chars > maxTextChars || chars > 2 * maxTextChars) return report('skipped');
      if (waiting.length >= maxWaiting || waitingChars + chars > maxWaitingChars) return report('dropped');
      waiting.push(answer);
      waitingChars += chars;
      if (!isRunning) void run();
    },
  };
}

/** What the second meter uses of the process. */
interface MeterParts {
  readonly tokens: IdleTokenCounter;
  readonly metrics: Pick<Metrics, 'add'>;
  /** Numbers from 0 up to 1, by which answers are sampled. */
  readonly random: () => number;
}

/**
 * Makes the second meter of a process, with its metrics. The returned function makes what a config does with settled requests:
 * it samples a share of them. What was learned under an earlier config stays.
 */
export function plug({ tokens, metrics, random }: MeterParts): (config: Config) => SettledObserver {
  const drift = new UsageDrift();
  const { samples } = metrics.add((constructors) => meterInstruments(constructors, drift));
  const meter = createSecondMeter(tokens, drift, (result) => samples(result).inc());
  return ({ metering: { sample: share } }) =>
    (result, _summary, exchange) =>
      meterUsage(result, exchange, { meter, share, random });
}

/** What decides on samples: the share of the answers, from 0 to 1, and numbers from 0 up to 1. */
interface Sampling {
  readonly meter: SecondMeter;
  readonly share: number;
  readonly random: () => number;
}

/** Offers a share of the answers with reported usage to the meter: after the settlement, which has nothing to wait for. */
export function meterUsage(
  result: ExchangeResult,
  { stage }: Pick<Exchange, 'stage'>,
  { meter, share, random }: Sampling,
): void {
  if (result.kind !== 'finished' || result.usage === null) return;
  if (stage.stage !== 'recorded' || stage.work.kind !== 'text' || random() >= share) return;
  const { request, received } = stage.work;
  const { upstream, model } = stage.attempts;
  if (upstream === null || model === null) return;
  meter.offer({
    upstream,
    model,
    turns: request.turns,
    text: received.text,
    hasThoughts: received.thoughts.chars > 0,
    usage: result.usage,
  });
}

function charsOf({ turns, text }: MeteredAnswer): number {
  return turns.reduce((sum, turn) => sum + turn.text.length, text.chars);
}

/** Counts a sample; says whether there was anything to compare. */
async function compare(
  { upstream, model, turns, text, hasThoughts, usage }: MeteredAnswer,
  tokens: IdleTokenCounter,
  drift: UsageDrift,
): Promise<SampleResult> {
  const input = (await tokens.countWhenIdle(questionOf(turns))) + tokensOfTurns(turns);
  const reportedOutput = visibleOutput(usage, hasThoughts);
  const output = reportedOutput === null ? 0 : await tokens.countWhenIdle(text.beginning);
  if (input >= leastTokens) drift.add(upstream, model, 'input', usage.inputTokens, input);
  if (reportedOutput !== null && output >= leastTokens)
    drift.add(upstream, model, 'output', reportedOutput, output);
  return input >= leastTokens || output >= leastTokens ? 'compared' : 'skipped';
}

/**
 * The reported tokens of the text alone; `null` where the provider has thoughts but does not say how many tokens they took:
 * what it shows of them may be a summary.
 */
function visibleOutput({ outputTokens, reasoningTokens }: Usage, hasThoughts: boolean): number | null {
  return hasThoughts && reasoningTokens === 0 ? null : outputTokens - reasoningTokens;
}
