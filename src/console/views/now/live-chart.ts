import { html } from 'htm/preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { VNode } from 'preact';
import type { Status } from '../../api/use-status.ts';
import { Chart } from '../../widgets/chart.ts';

/** How often a point is added, in milliseconds, and how many are kept: ten minutes. */
const intervalMs = 2_000;
const maxPoints = 300;

interface Point {
  /** In seconds since 1970. */
  readonly at: number;
  readonly running: number;
  readonly waiting: number;
  readonly perSecond: number;
}

/** What runs, what waits, and how much ends in a second, as it was seen since the page was opened. */
export function LiveChart({ status }: { readonly status: Status }): VNode {
  const points = usePoints(status);
  const series = useMemo(
    () => [
      { name: 'in progress', values: points.map(({ running }) => running) },
      { name: 'waiting for a slot', values: points.map(({ waiting }) => waiting) },
      { name: 'ended per second', values: points.map(({ perSecond }) => perSecond) },
    ],
    [points],
  );
  const times = useMemo(() => points.map(({ at }) => at), [points]);
  return html`<${Chart}
    label="Requests in progress, waiting for a slot, and ended per second, since this page was opened"
    times=${times}
    series=${series}
  />`;
}

/** The gateway tells a status only when it has changed, so points are added by a timer. */
function usePoints(status: Status): readonly Point[] {
  const latest = useRef(status);
  latest.current = status;
  const [points, setPoints] = useState<readonly Point[]>([]);
  useEffect(() => {
    const add = (): void => setPoints((before) => [...before, pointOf(latest.current)].slice(-maxPoints));
    add();
    const timer = setInterval(add, intervalMs);
    return () => clearInterval(timer);
  }, []);
  return points;
}

function pointOf({ in_flight: { running, waiting }, recent }: Status): Point {
  return { at: Date.now() / 1_000, running, waiting, perSecond: recent.per_second };
}
