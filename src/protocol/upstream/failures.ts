import { refuse } from '../../shared/errors.ts';
import type { Refusal } from '../../shared/errors.ts';

/** `what` names the fault without quoting the upstream: its bodies may hold prompts or addresses. */
export function invalidAnswer(what: string): Refusal {
  return refuse('upstream_invalid', `The model's provider sent ${what}.`);
}

/** A failure that the upstream itself reported inside an answer. */
export function reportedFailure(): Refusal {
  return refuse('upstream_error', "The model's provider reported an error while it was answering.");
}

/** An answer that stopped without a reason for its end. */
export function truncatedAnswer(): Refusal {
  return refuse(
    'upstream_truncated',
    "The model's provider ended the answer without finishing it; the text so far is not complete.",
  );
}
