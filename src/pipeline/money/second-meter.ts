import type { IdleTokenCounter } from '../../domain/ports/tokens.ts';
import type { SampleResult } from '../../domain/ports/telemetry.ts';
import type { UsageDrift } from '../../domain/money/usage-drift.ts';
import type { TextSample } from '../../protocol/kept-text.ts';
import type { TextTurn, Usage } from '../../protocol/text.ts';
import { questionOf, tokensOfTurns } from '../../domain/money/hold-estimate.ts';
import type { ExchangeResult } from '../results.ts';
import type { Stage } from '../stages.ts';

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
export interface SecondMeter {
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

/** Offers a share of the answers with reported usage to the meter: after the settlement, which has nothing to wait for. */
export function meterUsage(
  result: ExchangeResult,
  { stage }: { readonly stage: Stage },
  {
    secondMeter,
    meteredShare,
    random,
  }: { readonly secondMeter: SecondMeter; readonly meteredShare: number; readonly random: () => number },
): void {
  if (meteredShare === 0 || result.kind !== 'finished' || result.usage === null) return;
  if (stage.stage !== 'recorded' || stage.work.kind !== 'text' || random() >= meteredShare) return;
  const { request, received } = stage.work;
  const { upstream, model } = stage.attempts;
  if (upstream === null || model === null) return;
  secondMeter.offer({
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
