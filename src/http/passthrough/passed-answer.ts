import type { ClientRequest, IncomingMessage } from 'node:http';
import type { PassedHead } from '../../pipeline/run-passthrough.ts';
import { readRetryAfter } from '../../protocol/upstream/retry-after.ts';

/** What the head of an answer that is passed on says of the limits of its upstream: its status, and the pause it asks for. */
export function passedHeadOf({ headers }: IncomingMessage, status: number): PassedHead {
  const retryAfterMs = readRetryAfter((name) => {
    const value = headers[name];
    return typeof value === 'string' ? value : undefined;
  });
  return { status, retryAfterMs, limits: null };
}

/** Whether the head of an answer announces a body. */
export function hasBody({
  statusCode,
  headers,
  req,
}: IncomingMessage & { readonly req?: ClientRequest }): boolean {
  const isEmpty = statusCode === 204 || statusCode === 304 || headers['content-length'] === '0';
  return !isEmpty && req?.method !== 'HEAD';
}
