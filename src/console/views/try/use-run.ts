import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { adminPath, checkSession, readRefusal } from '../../api/admin-api.ts';
import { readParts } from '../../api/event-stream.ts';
import { stopAtLogout } from '../../api/session.ts';
import { Collector } from './run.ts';
import type { Failure, Run } from './run.ts';

/** A protocol in which a client asks for a text. */
export type Protocol = 'chat' | 'responses';

/** What is sent to a model. */
export interface TryRequest {
  readonly keyId: string;
  readonly model: string;
  readonly protocol: Protocol;
  readonly isStreamed: boolean;
  /** The system text; empty for none. */
  readonly system: string;
  readonly question: string;
  /** The most output tokens; empty for no cap. */
  readonly cap: string;
}

/** The protocols by their names, with the paths of their endpoints. */
export const protocols: Readonly<Record<Protocol, { readonly title: string; readonly path: string }>> = {
  chat: { title: 'Chat Completions', path: 'chat/completions' },
  responses: { title: 'Responses', path: 'responses' },
};

/** The body of a request, as a client of its protocol writes it. */
function bodyOf({ model, protocol, isStreamed, system, question, cap }: TryRequest): object {
  const maxTokens = cap.trim() === '' ? undefined : Number(cap);
  const stream = isStreamed ? true : undefined;
  if (protocol === 'responses')
    return {
      model,
      ...(system === '' ? {} : { instructions: system }),
      input: question,
      max_output_tokens: maxTokens,
      stream,
    };
  return {
    model,
    messages: [
      ...(system === '' ? [] : [{ role: 'system', content: system }]),
      { role: 'user', content: question },
    ],
    max_completion_tokens: maxTokens,
    stream,
    stream_options: isStreamed ? { include_usage: true } : undefined,
  };
}

/** The same request as its key's holder sends it, for a shell that has the address and the key in variables. */
export function curlLine(request: TryRequest): string {
  return [
    `curl ${request.isStreamed ? '-N ' : ''}"$TEXTGATE_URL/v1/${protocols[request.protocol].path}" \\`,
    '  -H "Authorization: Bearer $TEXTGATE_KEY" -H \'Content-Type: application/json\' \\',
    `  -d ${quote(JSON.stringify(bodyOf(request)))}`,
  ].join('\n');
}

/** Quotes a text for a shell, which reads nothing within single quotes but their end. */
function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** Sends requests, one at a time, and shows what comes of the latest once per frame of the screen, however much that is. */
export function useRun() {
  const [run, setRun] = useState<Run | null>(null);
  const latest = useRef(0);
  const stopCurrent = useRef<() => void>(() => {});
  const start = useCallback((request: TryRequest) => {
    stopCurrent.current();
    const number = (latest.current += 1);
    // A request that is stopped for another one says so later, and must not be shown in its place.
    stopCurrent.current = send(request, (next) => {
      if (number === latest.current) setRun(next);
    });
  }, []);
  const stop = useCallback(() => stopCurrent.current(), []);
  useEffect(() => stop, []);
  useEffect(() => stopAtLogout(stop), []);
  return { run, start, stop };
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
