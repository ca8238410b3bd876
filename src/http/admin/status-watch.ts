import { writeEventFrame } from '../../protocol/sse.ts';
import type { Clock } from '../../domain/ports/clock.ts';
import type { ReportFault } from '../../domain/ports/telemetry.ts';
import type { Status } from '../../operations/read-status.ts';
import { refuse } from '../../shared/errors.ts';
import type { Refusal } from '../../shared/errors.ts';
import { streamHeaders } from '../answers/answer-headers.ts';
import { isoTime } from '../present/iso-time.ts';
import { presentChanging } from '../present/status.ts';
import type { Response } from '../router.ts';

/** How many clients may watch the status of one process at a time. */
export const maxWatchers = 32;

/** How often the status is computed while it is watched, in milliseconds; once for all watchers. */
const everyMs = 1_000;

/** Sent where nothing has changed, so that a watcher sees that the connection holds. */
const unchanged = ': unchanged\n\n';

/** The watchers of a process's status. */
export type StatusWatch = ReturnType<typeof createStatusWatch>;

interface Watcher {
  readonly response: Response;
  readonly limit: number;
  readonly mayWatch: () => boolean;
  /** What it was last sent, without the time. */
  sent: string | null;
}

/** Creates the watch over a status. Nothing is computed while there is no watcher. */
export function createStatusWatch(read: () => Promise<Status>, clock: Clock, onFault: ReportFault) {
  const watchers = new Set<Watcher>();
  let isClosed = false;
  let latest: { readonly status: Promise<Status>; readonly atMs: number } | null = null;
  let cancel: (() => void) | null = null;

  const compute = (): Promise<Status> => {
    latest = { status: read(), atMs: clock.monotonicMs() };
    return latest.status;
  };
  /** The status of this second: clients that come at a time, or come and go, cost no more than one. */
  const current = (): Promise<Status> =>
    latest !== null && clock.monotonicMs() - latest.atMs < everyMs ? latest.status : compute();
  const arm = (): void => {
    // A watcher that came during a tick has armed it already.
    cancel?.();
    cancel = clock.schedule(everyMs, () => void tick());
  };
  const close = (): void => {
    cancel?.();
    cancel = null;
    for (const { response } of watchers) response.end();
    watchers.clear();
  };
  const tick = async (): Promise<void> => {
    try {
      const status = await compute();
      const texts = new Map<number, string>();
      for (const watcher of watchers) {
        if (watcher.mayWatch()) send(watcher, status, texts);
        else end(watcher);
      }
      if (watchers.size > 0) arm();
    } catch (error) {
      onFault('the status could not be read: its watchers are cut off', error);
      latest = null;
      close();
    }
  };
  const remove = (watcher: Watcher): void => {
    if (!watchers.delete(watcher) || watchers.size > 0) return;
    cancel?.();
    cancel = null;
    // It may hold up to a thousand requests.
    latest = null;
  };
  const end = (watcher: Watcher): void => {
    remove(watcher);
    watcher.response.end();
  };
  return {
    /**
     * Sends the status at once, and then every second until either side ends it, or the watcher `mayWatch` no more: its
     * session may end before its connection does. Returns a refusal if too many watch.
     */
    async add(response: Response, limit: number, mayWatch: () => boolean): Promise<Refusal | null> {
      if (watchers.size >= maxWatchers) return tooMany();
      const watcher: Watcher = { response, limit, mayWatch, sent: null };
      watchers.add(watcher);
      response.once('close', () => remove(watcher));
      response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', ...streamHeaders });
      const status = await current();
      if (isClosed) close();
      if (!watchers.has(watcher)) return null;
      send(watcher, status, new Map());
      if (cancel === null) arm();
      return null;
    },
    /** Ends all streams; later ones end at once. */
    close(): void {
      isClosed = true;
      close();
    },
  };
}

/**
 * Sends a status, or that it is unchanged. Nothing is written to a watcher that has not read what came before: it misses
 * events, and gets the latest one once it reads again. `texts` has what was written already for other watchers, by limit.
 */
function send(watcher: Watcher, status: Status, texts: Map<number, string>): void {
  const { response, limit, sent } = watcher;
  if (response.writableLength > 0) return;
  const text = texts.get(limit) ?? JSON.stringify(presentChanging(status, limit));
  texts.set(limit, text);
  if (text === sent) return void response.write(unchanged);
  watcher.sent = text;
  const beginning = `{"object":"status","at":"${isoTime(status.atMs)}",`;
  response.write(writeEventFrame('status', beginning + text.slice(1)));
}

function tooMany(): Refusal {
  return refuse('overloaded', `The status is watched by ${maxWatchers} clients already. End one of them.`, {
    retryAfterMs: everyMs,
  });
}
