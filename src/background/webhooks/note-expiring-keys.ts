import { nameOfExpiry, subjects } from '../../domain/events.ts';
import type { Clock } from '../../domain/ports/clock.ts';
import type { Outbox } from '../../domain/ports/outbox.ts';
import type { SharedDuty } from '../../domain/ports/shared-changes.ts';
import type { ReportFault } from '../../domain/ports/telemetry.ts';
import { formatDuration } from '../../shared/duration.ts';
import { repeat } from '../repeat.ts';

/** How long after the start, and how often, keys that expire soon are looked for, in milliseconds. */
const firstMs = 5_000;
const lookMs = 300_000;

/** How many reads one look makes for each time. */
const maxReads = 500;

interface ExpiryPorts {
  readonly outbox: Outbox;
  readonly ready: Promise<void>;
  readonly clock: Clock;
  /** The times before an expiry, in milliseconds; none if no webhook wants to know. */
  readonly notices: () => readonly number[];
  readonly duty: SharedDuty | null;
  readonly onFault: ReportFault;
}

/**
 * Adds an event for each key that expires soon. A key gets the notice of the shortest time that its expiry is within: one that
 * is made for a day gets none for a week. Returns a function that resolves when nothing is read any more.
 */
export function noteExpiringKeys(ports: ExpiryPorts): () => Promise<void> {
  const { outbox, clock, notices, duty, onFault } = ports;
  const stopping = new AbortController();
  const { signal } = stopping;
  const look = async (): Promise<void> => {
    try {
      const times = notices().toSorted((one, other) => one - other);
      if (times.length === 0 || (duty !== null && !(await duty.isOurs()))) return;
      const nowMs = clock.now();
      let afterMs = nowMs;
      for (const time of times) {
        await noteWithin(outbox, { afterMs, untilMs: nowMs + time, within: formatDuration(time) }, signal);
        afterMs = nowMs + time;
      }
    } catch (error) {
      if (!signal.aborted) onFault('keys that expire soon can not be read', error);
    }
  };
  let looking: (() => Promise<void>) | null = null;
  ports.ready.then(
    () => {
      if (!signal.aborted) looking = repeat(look, { firstMs, delayMs: lookMs }, clock, signal);
    },
    () => {},
  );
  return async () => {
    stopping.abort();
    await looking?.();
  };
}

/** A span of time in which keys expire, and the time of the notice. */
interface Span {
  readonly afterMs: number;
  readonly untilMs: number;
  readonly within: string;
}

async function noteWithin(
  outbox: Outbox,
  { afterMs, untilMs, within }: Span,
  signal: AbortSignal,
): Promise<void> {
  for (let read = 0; read < maxReads && !signal.aborted; read++) {
    const keys = await outbox.listExpiring(afterMs, untilMs, within);
    if (keys.length === 0) return;
    await outbox.add(
      keys.map(({ id, name, expiresAtMs }) => ({
        name: nameOfExpiry(id, within, expiresAtMs),
        type: 'key.expiring',
        subject: subjects.key(id),
        data: { key: { id, name }, expires_at: new Date(expiresAtMs).toISOString(), within },
        // Otherwise the key would get the same notice again once its deliveries were removed.
        keptUntilMs: expiresAtMs,
      })),
    );
  }
}
