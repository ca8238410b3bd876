import { useEffect, useRef } from 'preact/hooks';
import type { Asked } from './use-loaded.ts';

/**
 * Reads an answer again at an interval, in milliseconds. A slow answer is waited for: asking again would break it off each
 * time. A page in the background asks for nothing.
 */
export function usePolling(
  { isWaiting, reload }: Pick<Asked<unknown>, 'isWaiting' | 'reload'>,
  everyMs: number,
): void {
  const isBusy = useRef(isWaiting);
  isBusy.current = isWaiting;
  useEffect(() => {
    const timer = setInterval(() => {
      if (!isBusy.current && !document.hidden) reload();
    }, everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
}
