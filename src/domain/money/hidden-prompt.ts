import { mostMarkTokens, unknownHiddenTokens, usualTokensOf } from './hold-estimate.ts';

/** The longest question that is measured, in bytes: in a longer one the count of its own text hides what was added. */
const maxQuestionBytes = 512;

/** How many answers make a block; the largest prompt of the last whole block and of the current one counts. */
const blockAnswers = 1_000;

/** An answer's reported input, and the most tokens that its question can have. */
interface MeasuredInput {
  readonly inputTokens: number;
  readonly mostTokens: number;
  /** How many messages the question had. */
  readonly turns: number;
}

/** The prompt that one model of an upstream adds to questions in secret, as a strict hold counts it. */
export interface HiddenPrompt {
  /** Its tokens. */
  readonly tokens: number;
  /** Notes what an answer reported. */
  saw(measured: MeasuredInput): void;
}

/** A prompt that the config names: nothing is measured. */
export function namedPrompt(tokens: number): HiddenPrompt {
  return { tokens, saw: () => {} };
}

/**
 * The longest prompt that at least the last 1,000 answers to short questions show: in their usage stand more tokens than
 * the text can have. Until there are as many, it is no shorter than what is known of the provider, or 4,096 tokens.
 */
export class MeasuredPrompt implements HiddenPrompt {
  #inBlock = 0;
  #most = 0;
  #mostBefore: number;

  constructor(knownTokens: number = unknownHiddenTokens) {
    this.#mostBefore = knownTokens;
  }

  get tokens(): number {
    return Math.max(this.#mostBefore, this.#most);
  }

  saw({ inputTokens, mostTokens, turns }: MeasuredInput): void {
    const bytes = mostTokens - mostMarkTokens(turns);
    if (bytes > maxQuestionBytes) return;
    // What is left of the text is more than its usual tokens: shorter questions have fewer, and the same prompt.
    if (inputTokens > mostTokens)
      this.#most = Math.max(this.#most, inputTokens - usualTokensOf(bytes, turns));
    if (++this.#inBlock < blockAnswers) return;
    this.#mostBefore = this.#most;
    this.#most = 0;
    this.#inBlock = 0;
  }
}
