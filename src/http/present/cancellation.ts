import { refuse } from '../../shared/errors.ts';

/** The answer to a cancellation: a refusal for a request that is over, or never ran. */
export function presentCancellation(requestId: string, wasRunning: boolean) {
  if (wasRunning) return { request_id: requestId, cancelled: true as const };
  return refuse('request_not_found', 'No request with this id is running.');
}
