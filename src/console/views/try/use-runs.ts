import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { adminPath, checkSession, readRefusal } from '../../api/admin-api.ts';
import { readParts } from '../../api/event-stream.ts';
import { stopAtLogout } from '../../api/session.ts';
import { bodyOf, protocols } from './request.ts';
import type { TryRequest } from './request.ts';
import { Collector } from './run.ts';
import type { Failure, Run } from './run.ts';

/** A request that was sent, with what has come of it. */
export interface SentRun {
  readonly request: TryRequest;
  readonly run: Run;
}

/**
 * Sends one request, or several at the same time to compare their answers, and shows what comes of the latest ones once per
 * frame of the screen, however much that is.
 */
export function useRuns() {
  const [runs, setRuns] = useState<readonly SentRun[]>([]);
  const latest = useRef(0);
  const stopCurrent = useRef<readonly (() => void)[]>([]);
  const stop = useCallback(() => {
    for (const stopOne of stopCurrent.current) stopOne();
  }, []);
  const start = useCallback((requests: readonly TryRequest[]) => {
    stop();
    const number = (latest.current += 1);
    setRuns([]);
    stopCurrent.current = requests.map((request, index) =>
      send(request, (run) => {
        // A request that is stopped for another one says so later, and must not be shown in its place.
        if (number === latest.current) setRuns((before) => before.toSpliced(index, 1, { request, run }));
      }),
    );
  }, []);
  useEffect(() => stop, []);
  useEffect(() => stopAtLogout(stop), []);
  return { runs, start, stop };
}

/** Sends a request and tells what has come of it. Returns what stops it. */
function send(request: TryRequest, onRun: (run: Run) => void): () => void {
  const controller = new AbortController();
  const collector = new Collector(request.isStreamed);
  const startedAt = performance.now();
  const now = (): number => performance.now() - startedAt;
  let timer: number | null = null;
  const show = (): void => {
    timer = null;
    onRun(collector.snapshot());
  };
  const change = (): void => {
    timer ??= requestAnimationFrame(show);
  };
  show();
  void receive(request, collector, controller.signal, now, change).then((failure) => {
    collector.end(now(), { isStopped: controller.signal.aborted, failure });
    if (timer !== null) cancelAnimationFrame(timer);
    show();
  });
  return () => controller.abort();
}

/** Receives an answer. Returns why none came whole; `null` if its parts say enough. */
async function receive(
  request: TryRequest,
  collector: Collector,
  signal: AbortSignal,
  now: () => number,
  onChange: () => void,
): Promise<Failure | null> {
  let response: Response;
  try {
    response = await fetch(adminPath(`try/${protocols[request.protocol].path}`, { key: request.keyId }), {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(bodyOf(request)),
      signal,
    });
  } catch {
    // Perhaps it cut the request off, because the session ended in another tab or by its time.
    if (!signal.aborted) checkSession();
    return { code: null, message: 'The gateway can not be reached.' };
  }
  collector.begin(response.status, response.headers, now());
  onChange();
  try {
    if (response.headers.get('content-type')?.startsWith('text/event-stream') === true) {
      for await (const parts of readParts(response)) {
        for (const part of parts) collector.addPart(part, now());
        onChange();
      }
      return null;
    }
    const text = await response.text();
    collector.addBody(text, now());
    return response.ok ? null : readRefusal(response.status, text);
  } catch {
    // The connection broke off: the answer has no end, which shows by itself. It may have ended with its session.
    if (!signal.aborted) checkSession();
    return null;
  }
}
