import type { PresentedShadow } from '../../../http/present/shadow.ts';
import { adminPath } from '../../api/admin-api.ts';
import { useAnswer } from '../../api/use-answer.ts';
import { usePolling } from '../../api/use-polling.ts';

export type Shadow = PresentedShadow;

/** How often the counts are read again, in milliseconds. */
const everyMs = 10_000;

/** Reads the shadow routes with their counts, and reads them again; `null` before the first answer. */
export function useShadows(): { readonly shadows: readonly Shadow[] | null; readonly error: string | null } {
  const asked = useAnswer<{ readonly data: readonly Shadow[] }>(adminPath('shadow'));
  usePolling(asked, everyMs);
  return { shadows: asked.answer?.data ?? null, error: asked.error };
}
