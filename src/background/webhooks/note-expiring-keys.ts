import { nameOfExpiry, subjects } from '../../domain/events.ts';
import type { Outbox } from '../../domain/ports/outbox.ts';
import { formatDuration } from '../../shared/duration.ts';
import { isOurs, repeatTask } from '../repeat.ts';
import type { DutyOfOne, Task, TaskPorts } from '../repeat.ts';

/** How long after the start, and how often, keys that expire soon are looked for, in milliseconds. */
const firstMs = 5_000;
const lookMs = 300_000;

/** How many reads one look makes for each time. */
const maxReads = 500;

interface ExpiryPorts extends TaskPorts {
  readonly outbox: Outbox;
  /** The times before an expiry, in milliseconds; none if no webhook wants to know. */
  readonly notices: () => readonly number[];
  readonly duty: DutyOfOne;
}

/**
 * Adds an event for each key that expires soon. A key gets the notice of the shortest time that its expiry is within: one that
 * is made for a day gets none for a week.
 */
export function noteExpiringKeys({ outbox, notices, duty, ...ports }: ExpiryPorts): Pick<Task, 'stop'> {
  const failure = 'keys that expire soon can not be read';
  return repeatTask(ports, { firstMs, delayMs: lookMs, failure }, async (signal) => {
    const times = notices().toSorted((one, other) => one - other);
    if (times.length === 0 || !(await isOurs(duty))) return;
    const nowMs = ports.clock.now();
    let afterMs = nowMs;
    for (const time of times) {
      await noteWithin(outbox, { afterMs, untilMs: nowMs + time, within: formatDuration(time) }, signal);
      afterMs = nowMs + time;
    }
  });
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
