import { errorBody } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';

/** The OpenAI error envelope, as the body of an HTTP error. */
export function writeRefusal(refusal: Refusal): string {
  return JSON.stringify({ error: errorBody(refusal) });
}
