import { readFinishReason } from './finish-reasons.ts';
import type { SaidWords } from './said-words.ts';

/** Statuses with which providers refuse a text in words: most with 400, OpenRouter and xAI with 403. */
export const textRefusals: ReadonlySet<number> = new Set([400, 403, 422, 451]);

/** Names of errors that refuse a text, beside those that are also finish reasons of blocked texts. */
const refusalCodes =
  /^(?:flagged_input|content_?filter(?:ed)?|invalid_prompt|moderation_blocked|content_policy_violation|ResponsibleAIPolicyViolation|data_?inspection_?failed)$/i;

/** How providers' own messages begin when they refuse a text. */
const refusalOpenings =
  /^(?:invalid prompt: your prompt was flagged|the response was filtered due to the prompt|output blocked by content filtering policy|content exists risk|content violates usage guidelines|the request was rejected because it was considered high risk|(?:input|output) data may contain inappropriate content|system detected potentially unsafe or sensitive content|your request was rejected (?:by|as a result of) (?:the|our) safety system)/i;

/**
 * Phrases that mean the same within a message. Each has 16 letters or more: in a quotation of the request, so long a run
 * is always hidden, and a shorter one need not be.
 */
const refusalPhrases =
  /content_policy_violation|ResponsibleAIPolicyViolation|content (?:management|filtering) policy|data_?inspection_?failed|content exists risk|considered high risk|SAFETY_CHECK_TYPE_\w|\bviolat\w{0,8} (?:of )?(?:our |the |its |\w{1,20}'s )?(?:usage|content|safety|acceptable use) (?:polic|guideline)/i;

/** Phrases that mean: the provider has closed the operator's account, if for what earlier texts said. */
const accountClosed =
  /\baccount\b[^.]{0,60}? (?:was|is|has been)(?: \w{1,20})? (?:suspended|deactivated|disabled|terminated|banned)/i;

/** Whether an error's name means that the provider refuses the text of the request. */
export function isRefusalCode(code: string): boolean {
  return refusalCodes.test(code) || readFinishReason(code) === 'content_filter';
}

/** Whether an error's message begins as those of providers do that refuse the text of the request. */
export function opensAsRefusal(message: string): boolean {
  return refusalOpenings.test(message);
}

/** Whether an error's words mean that the provider refuses the text of the request; then no other provider may get it. */
export function refusesText({ shown, name }: Pick<SaidWords, 'shown' | 'name'>): boolean {
  // Not by every name of a blocked text: a firewall's page may say `Blocked`, and nothing else.
  if (name !== null && refusalCodes.test(name)) return true;
  return refusalPhrases.test(shown) && !accountClosed.test(shown);
}
