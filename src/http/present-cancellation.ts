import { refuse } from '../shared/errors.ts';
import type { Refusal } from '../shared/errors.ts';

/** The answer to a cancellation: a refusal for a request that is over, or never ran. */
export function presentCancellation(requestId: string, wasRunning: boolean): object | Refusal {
  if (wasRunning) return { request_id: requestId, cancelled: true };
  return refuse('request_not_found', 'No request with this id is running.');
}
