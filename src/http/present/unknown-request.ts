import type { Retention } from '../../domain/ports/retention.ts';
import { refuse } from '../../shared/errors.ts';
import type { Refusal } from '../../shared/errors.ts';
import { isoTime } from './iso-time.ts';

/** The refusal of a request's id that no record has, which also says from when records were removed. */
export async function unknownRequest(
  message: string,
  { removedBefore }: Pick<Retention, 'removedBefore'>,
): Promise<Refusal> {
  const beforeMs = await removedBefore();
  const removed =
    beforeMs === null ? '' : ` Records of requests from before ${isoTime(beforeMs)} were removed.`;
  return refuse('request_not_found', message + removed);
}
