import { html } from 'htm/preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { VNode } from 'preact';
import type { Status } from '../../api/use-status.ts';
import { Chart } from '../../widgets/chart.ts';

/** How often a point is added, in milliseconds, and how many are kept: ten minutes. */
const intervalMs = 2_000;
const maxPoints = 300;

/** A minute, and as many requests as have whole numbers at the axis. */
const least = { seconds: 60, value: 5 };

interface Point {
  /** In seconds since 1970. */
  readonly at: number;
  /** `null` while nothing is known. */
  readonly running: number | null;
  readonly waiting: number | null;
  readonly perSecond: number | null;
}

interface Props {
  readonly status: Status;
  /** Whether the status is only what was last known. */
  readonly isLost: boolean;
}

/** What runs, what waits, and how much ends in a second, as it was seen since the page was opened. */
export function LiveChart({ status, isLost }: Props): VNode {
  const points = usePoints(status, isLost);
  const series = useMemo(
    () => [
      { name: 'in progress', values: points.map(({ running }) => running) },
      { name: 'waiting', values: points.map(({ waiting }) => waiting) },
      { name: 'ended per second', values: points.map(({ perSecond }) => perSecond) },
    ],
    [points],
  );
  const times = useMemo(() => points.map(({ at }) => at), [points]);
  return html`<${Chart}
    label="Requests in progress, waiting, and ended per second, since this page was opened"
    times=${times}
    series=${series}
    least=${least}
  />`;
}

/** The gateway tells a status only when it has changed, so points are added by a timer. */
function usePoints(status: Status, isLost: boolean): readonly Point[] {
  const latest = useRef<Status | null>(status);
  latest.current = isLost ? null : status;
  const [points, setPoints] = useState<readonly Point[]>([]);
  useEffect(() => {
    const add = (): void =>
      setPoints((before) => [...before, pointOf(document.hidden ? null : latest.current)].slice(-maxPoints));
    add();
    const timer = setInterval(add, intervalMs);
    return () => clearInterval(timer);
  }, []);
  return points;
}

function pointOf(status: Status | null): Point {
  const at = Date.now() / 1_000;
  if (status === null) return { at, running: null, waiting: null, perSecond: null };
  const { in_flight: inFlight, recent } = status;
  const { running, waiting } = inFlight;
  return { at, running, waiting, perSecond: recent.per_second };
}
