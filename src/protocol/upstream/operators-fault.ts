import type { SaidWords } from './said-words.ts';

/** Codes that mean: the operator's key, account or location is not accepted. */
const operatorsCodes =
  /^(?:API_KEY_INVALID|API_KEY_EXPIRED|(?:incorrect|invalid)_api_key|insufficient_quota|billing_(?:hard_limit|not_active)\w*|billing_error|account_?(?:deactivated|not_active)|authentication_error|permission_error|UNAUTHENTICATED|Arrearage)$/i;

/** How providers' own messages begin that say so. */
const operatorsOpenings =
  /^(?:your credit balance is too low|API key (?:not valid|not found|expired)|(?:incorrect|invalid)[ _]api[ _]key|you exceeded your current quota|user location is not supported|(?:your|this) organization (?:must be verified|has been disabled)|your account is not active|billing hard limit)/i;

/**
 * Phrases that say so within a message. Each has 16 letters or more: in a quotation of the request, so long a run is
 * always hidden, and a shorter one need not be.
 */
const operatorsPhrases =
  /API key not valid\. please|(?:incorrect|invalid)[ _]api[ _]key[ _]provided|credit balance is too low|billing_(?:hard_limit|not_active)|plans? (?:and|&) billing details|insufficient_quota|exceeded your current quota|account_deactivated|account_? ?is not active|organization must be verified|location is not supported/i;

/** Whether an error's name means the operator's key, account or location, rather than the request. */
export function isOperatorsCode(code: string): boolean {
  return operatorsCodes.test(code);
}

/** Whether a message begins as those of providers do that mean the operator's key, account or location. */
export function opensAsOperatorsFault(message: string): boolean {
  return operatorsOpenings.test(message);
}

/** Whether an error's words mean the operator's key, account or location, rather than the request. */
export function saysOperatorsFault({ shown, name }: Pick<SaidWords, 'shown' | 'name'>): boolean {
  return operatorsPhrases.test(shown) || (name !== null && isOperatorsCode(name));
}
