import { count } from '../shared/count.ts';
import type { Failure, FinishedAnswer, Usage } from '../protocol/text.ts';
import type { ReadAnswer } from './ask.ts';

/** How an answer went, in a line. */
export function describeAnswer({ ending, terms, deltas, firstTextMs, totalMs }: ReadAnswer): string {
  const reason = ending.kind === 'finished' ? describeReason(ending) : 'no finish reason';
  if (!terms.streamAsked) return `${reason}, ${milliseconds(totalMs)}`;
  const first = firstTextMs === null ? '' : `text after ${milliseconds(firstTextMs)}, `;
  return `${reason}, ${first}${count(deltas.length, 'piece')}, ${milliseconds(totalMs)} in all`;
}

/** The upstream's own word for a finish reason, if it is a plain word. */
function describeReason({ reason, rawReason }: FinishedAnswer): string {
  if (rawReason === '') return 'no finish reason';
  return `finish reason ${/^[\w-]{1,40}$/.test(rawReason) ? rawReason : reason}`;
}

/** A duration, in whole milliseconds. */
function milliseconds(duration: number): string {
  return `${Math.round(duration)} ms`;
}

/** The tokens of an answer. */
export function describeUsage({ inputTokens, outputTokens, reasoningTokens }: Usage): string {
  const thoughts = reasoningTokens === 0 ? '' : ` (${reasoningTokens} of them thoughts)`;
  return `${inputTokens} in, ${outputTokens} out${thoughts}`;
}

/** What the upstream itself said about a failure, after a colon; empty if that is nothing. */
export function wordsOf({ upstreamError }: Failure): string {
  const said = [upstreamError?.code ?? '', upstreamError?.message ?? ''].filter((text) => text !== '');
  return said.length === 0 ? '' : `: ${said.join(', ')}`;
}
