import type { Failure, Usage } from '../protocol/text.ts';
import type { ReadAnswer } from './ask.ts';

/** How an answer went, in a line. */
export function describeAnswer({ ending, terms, deltas, firstTextMs, totalMs }: ReadAnswer): string {
  const reason =
    ending.kind === 'finished' && ending.rawReason !== ''
      ? `finish reason ${ending.rawReason}`
      : 'no finish reason';
  if (!terms.streamAsked) return `${reason}, ${milliseconds(totalMs)}`;
  const first = firstTextMs === null ? '' : `text after ${milliseconds(firstTextMs)}, `;
  return `${reason}, ${first}${plural(deltas.length, 'piece')}, ${milliseconds(totalMs)} in all`;
}

/** A duration, in whole milliseconds. */
function milliseconds(duration: number): string {
  return `${Math.round(duration)} ms`;
}

/** A count with its noun, such as `2 models`. */
export function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

/** The tokens of an answer. */
export function describeUsage({ inputTokens, outputTokens, reasoningTokens }: Usage): string {
  const thoughts = reasoningTokens === 0 ? '' : ` (${reasoningTokens} of them thoughts)`;
  return `${inputTokens} in, ${outputTokens} out${thoughts}`;
}

/** What the upstream itself said about a failure, after a colon; empty if that is nothing. */
export function wordsOf({ detail, cause }: Failure): string {
  // The detail of an error status is the status itself, which the cause names already.
  return detail === '' || detail === cause ? '' : `: ${detail}`;
}
