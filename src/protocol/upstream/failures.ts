import { refuse } from '../../shared/errors.ts';
import type { Refusal } from '../../shared/errors.ts';

/** `what` names the fault without quoting the upstream: its bodies may hold prompts or addresses. */
export function invalidAnswer(what: string): Refusal {
  return refuse('upstream_invalid', `The model's provider sent ${what}.`);
}

/** An answer that wants a tool to be called: it has no text to pass on, or not all of it. */
export function toolCalled(): Refusal {
  return invalidAnswer('a tool call, though no tools were offered');
}

/** An answer that stopped without a reason for its end. */
export function truncatedAnswer(): Refusal {
  return refuse(
    'upstream_truncated',
    "The model's provider ended the answer without finishing it; the text so far is not complete.",
  );
}
