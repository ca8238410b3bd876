import { useEffect, useState, useMemo } from 'preact/hooks';
import type { PresentedStatus } from '../../http/present/status.ts';
import { adminPath, checkSession } from './admin-api.ts';

export type Status = PresentedStatus;

/** What is said while the connection is gone. */
export const lostNotice = 'The connection to the gateway is lost; this is what was last known.';

/** How long after a lost connection it is tried again, in milliseconds. */
const retryMs = 2_000;

/**
 * Follows the status of the gateway, as long as the page can be seen: a page in the background costs nothing. `isLost`: the
 * connection is gone, and what is shown is what was last known.
 */
export function useStatus(limit: number): { readonly status: Status | null; readonly isLost: boolean } {
  const [status, setStatus] = useState<Status | null>(null);
  const [isLost, setIsLost] = useState(false);
  useEffect(() => {
    let close: (() => void) | null = null;
    const update = (): void => {
      close?.();
      close = document.hidden ? null : follow(limit, setStatus, setIsLost);
    };
    update();
    document.addEventListener('visibilitychange', update);
    return () => {
      document.removeEventListener('visibilitychange', update);
      close?.();
    };
  }, [limit]);
  return { status, isLost };
}

/** Opens the stream of the status, and opens it again when it is lost. Returns what closes it. */
function follow(
  limit: number,
  onStatus: (status: Status) => void,
  onLost: (isLost: boolean) => void,
): () => void {
  let timer: ReturnType<typeof setTimeout> | null = null;
  let source: EventSource;
  const open = (): void => {
    source = new EventSource(adminPath('status', { limit }));
    source.addEventListener('status', (event) => {
      onStatus(JSON.parse(String(event.data)) as Status);
      onLost(false);
    });
    source.addEventListener('error', () => {
      onLost(true);
      source.close();
      timer = setTimeout(open, retryMs);
      checkSession();
    });
  };
  open();
  return () => {
    source.close();
    if (timer !== null) clearTimeout(timer);
  };
}

const secondMs = 1_000;

/**
 * The gateway's time in milliseconds, as it goes on second by second. `told` is the latest time that the gateway said: the
 * clock of the viewer may be another one, and ages that it measures would be wrong.
 */
export function useServerTime(told: string | null): number {
  const ahead = useMemo(() => (told === null ? 0 : Date.parse(told) - Date.now()), [told]);
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), secondMs);
    return () => clearInterval(timer);
  }, []);
  return Math.max(now, told === null ? 0 : Date.parse(told) - ahead) + ahead;
}
