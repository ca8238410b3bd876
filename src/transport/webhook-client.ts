import type { Clock } from '../domain/ports/clock.ts';
import type { UpstreamAnswer, UpstreamFault } from '../domain/ports/upstreams.ts';
import type { SendResult } from '../domain/ports/outbox.ts';
import { signatureHeaders } from '../shared/webhook-signature.ts';
import { openConnections } from './connections.ts';
import type { ConnectionOptions } from './connector.ts';
import { HttpCall } from './http-call.ts';
import { forwardingOf } from './proxy.ts';

/** How long a receiver may take from the connection to the end of its answer, in milliseconds. */
const attemptMs = 8_000;

/** How much of an answer is read, in bytes: none of it is used, but an answer that is read leaves its connection open. */
const maxAnswerBytes = 16_384;

/** How a webhook is reached. */
export interface WebhookClientOptions extends ConnectionOptions {
  readonly url: URL;
  /** The secrets of the signatures: two while one replaces the other. */
  readonly secrets: readonly string[];
}

/**
 * Sends events to one receiver, over connections like those to upstreams: through the same proxies, never to a link-local
 * address, with verified certificates. Redirects are not followed.
 */
export function createWebhookClient(options: WebhookClientOptions, clock: Clock) {
  const { url, secrets, proxy } = options;
  const { pool } = openConnections(url.origin, options);
  const forwarding = forwardingOf(url, proxy);
  const path = (forwarding?.origin ?? '') + url.pathname + url.search;
  const deadlines = { firstByteMs: attemptMs, idleMs: attemptMs, totalMs: attemptMs };
  const call = (id: string, body: string, signal: AbortSignal) =>
    new Promise<UpstreamAnswer | UpstreamFault>((resolve) => {
      const terms = {
        clock,
        deadlines,
        afterRead: queueMicrotask,
        signal,
        onSent: undefined,
        learnsLimits: false,
        decodes: false,
        forwarding,
      };
      const timestamp = Math.floor(clock.now() / 1_000);
      const headers = {
        'content-type': 'application/json',
        'user-agent': 'textgate',
        ...signatureHeaders(secrets, { id, timestamp, body }),
        ...forwarding?.headers,
      };
      pool.dispatch({ method: 'POST', path, body, headers }, new HttpCall(resolve, terms));
    });
  const attempt = async (id: string, body: string, signal: AbortSignal): Promise<SendResult> => {
    if (signal.aborted) return { kind: 'interrupted' };
    const answer = await call(id, body, signal);
    // A kept connection that the receiver closed meanwhile says nothing of it.
    const last = answer.kind === 'fault' && answer.fault === 'stale' ? await call(id, body, signal) : answer;
    return last.kind === 'fault' ? resultOf(last) : readAnswer(last);
  };
  const running = new Set<Promise<SendResult>>();
  return {
    send(id: string, body: string, signal: AbortSignal): Promise<SendResult> {
      const sent = attempt(id, body, signal).finally(() => running.delete(sent));
      running.add(sent);
      return sent;
    },
    /** Resolves when the attempts that run now have ended. */
    async idle(): Promise<void> {
      await Promise.all(running);
    },
    /** Closes its connections; attempts that still run break. */
    close: () => pool.destroy(),
  };
}

/** Judges an answer by its status, once it is whole or has been read as far as it is. */
async function readAnswer(answer: UpstreamAnswer): Promise<SendResult> {
  const { status, retryAfterMs } = answer;
  for (let bytes = 0; bytes < maxAnswerBytes;) {
    const piece = await answer.read();
    if (piece === null) break;
    if (!(piece instanceof Uint8Array)) return resultOf(piece);
    bytes += piece.length;
  }
  answer.release();
  if (status >= 200 && status <= 299) return { kind: 'delivered', status };
  return { kind: 'failed', reason: `status ${status}`, retryAfterMs };
}

/** A fault in words without the receiver's address. */
function resultOf({ fault, code }: UpstreamFault): SendResult {
  if (fault === 'interrupted') return { kind: 'interrupted' };
  const what =
    fault === 'first_byte_timeout' || fault === 'total_timeout' || fault === 'idle_timeout'
      ? `no whole answer within ${attemptMs / 1_000} s`
      : fault === 'broken'
        ? 'the connection broke in the middle of the answer'
        : 'the connection failed';
  return { kind: 'failed', reason: code === undefined ? what : `${what} (${code})`, retryAfterMs: null };
}
