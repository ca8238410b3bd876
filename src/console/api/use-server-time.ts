import { useEffect, useMemo, useState } from 'preact/hooks';

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
