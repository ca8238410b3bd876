/** Statuses with which providers refuse a text: most with 400, OpenRouter and xAI with 403. */
export const textRefusals: ReadonlySet<number> = new Set([400, 403, 422]);

/** Phrases in a provider's error that mean: it refuses this text, because of what the text says. */
const refusedText =
  /\bcontent_filter\b|content_policy_violation|ResponsibleAIPolicyViolation|content (?:management|filtering) policy|moderation_blocked|flagged_input|data_?inspection_?failed|content exists risk|considered high risk|SAFETY_CHECK_TYPE|violat\w+ (?:of )?(?:our |the |its |\w+'s )?(?:usage|content|safety|acceptable use) (?:polic|guideline)/i;

/** Phrases that mean: the provider has closed the operator's account, if for what earlier texts said. */
const accountClosed = /\baccount\b|suspended|terminated|deactivated|banned/i;

/**
 * Whether an error's words mean that the provider refuses the text of the request; then no other provider may get it.
 * The words are searched and never quoted.
 */
export function refusesText(words: string): boolean {
  return refusedText.test(words) && !accountClosed.test(words);
}
