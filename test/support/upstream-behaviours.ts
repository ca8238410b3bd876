import type { UpstreamAnswer, UpstreamFault } from '../../src/domain/ports/upstreams.ts';
import { bodyOf } from './body-of.ts';
import { chatFrames } from './scripted-upstream.ts';

const frames = chatFrames(['one ', 'two']);

/** An upstream's behaviour and its consequence: a good answer, another route, a refusal, or a broken answer. */
export interface Behaviour {
  readonly means: 'good' | 'elsewhere' | 'refused' | 'midway';
  readonly result: string;
  readonly code: string | null;
  play(): UpstreamAnswer | UpstreamFault;
}

const elsewhere = (result: string, code: string, play: Behaviour['play']): Behaviour => ({
  means: 'elsewhere',
  result,
  code,
  play,
});
const status = (value: number, result: string, code: string): Behaviour =>
  elsewhere(result, code, () => answer(value, 'application/json', ['{"error":{"message":"no"}}', null]));
const stream = (parts: readonly (string | null | UpstreamFault)[]): UpstreamAnswer =>
  answer(200, 'text/event-stream', parts);
const [opening = '', firstText = '', ...rest] = frames;

export const good: Behaviour = {
  means: 'good',
  result: 'ok',
  code: null,
  play: () => stream([frames.join(''), null]),
};

/** The behaviours of an upstream, by name. */
export const behaviours: Readonly<Record<string, Behaviour>> = {
  good,
  'good, in pieces': { ...good, play: () => stream([opening, firstText, ...rest, null]) },
  'refuses the connection': elsewhere('unreachable', 'upstream_unavailable', () => ({
    kind: 'fault',
    fault: 'unreachable',
  })),
  'closes the connection': elsewhere('unanswered', 'upstream_unavailable', () => ({
    kind: 'fault',
    fault: 'unanswered',
  })),
  'says nothing': elsewhere('timeout', 'upstream_timeout', () => ({
    kind: 'fault',
    fault: 'first_byte_timeout',
  })),
  'stalls before its first word': elsewhere('timeout', 'upstream_timeout', () =>
    stream([opening, { kind: 'fault', fault: 'idle_timeout' }]),
  ),
  'breaks before its first word': elsewhere('truncated', 'upstream_truncated', () =>
    stream([opening, { kind: 'fault', fault: 'broken' }]),
  ),
  'ends before its first word': elsewhere('truncated', 'upstream_truncated', () => stream([opening, null])),
  'answers 500': status(500, 'error', 'upstream_error'),
  'answers 503': status(503, 'error', 'overloaded'),
  'answers 529': status(529, 'overloaded', 'overloaded'),
  'answers 429': status(429, 'rate_limited', 'upstream_rate_limited'),
  'answers 401': status(401, 'auth', 'upstream_auth'),
  'answers 404': status(404, 'unserved', 'upstream_error'),
  'sends a page': elsewhere('invalid', 'upstream_invalid', () => answer(200, 'text/html', ['<html>', null])),
  'sends nothing': elsewhere('invalid', 'upstream_invalid', () => answer(200, 'application/json', [null])),
  'sends an error with 200': elsewhere('error', 'upstream_error', () =>
    stream(['data: {"error":{"message":"no"}}\n\n', null]),
  ),
  'sends a whole body without an end': elsewhere('truncated', 'upstream_truncated', () =>
    answer(200, 'application/json', [
      '{"choices":[{"message":{"content":"one "},"finish_reason":null}]}',
      null,
    ]),
  ),
  'sends no JSON': elsewhere('invalid', 'upstream_invalid', () => stream(['data: {oops\n\n', null])),
  'sends a line without an end': elsewhere('invalid', 'upstream_invalid', () =>
    stream([`data: ${'x'.repeat(1_100_000)}`, null]),
  ),
  'answers 400': { ...status(400, 'refused', 'invalid_value'), means: 'refused' },
  'finds the text too long': {
    ...elsewhere('refused', 'context_length_exceeded', () =>
      answer(400, 'application/json', ['{"error":{"code":"context_length_exceeded"}}', null]),
    ),
    means: 'refused',
  },
  'fails right after its first word': {
    ...elsewhere('error', 'upstream_error', () =>
      stream([`${opening}${firstText}data: {"error":{"message":"no"}}\n\n`, null]),
    ),
    means: 'midway',
  },
  'breaks in the middle': {
    ...elsewhere('truncated', 'upstream_truncated', () =>
      stream([opening + firstText, { kind: 'fault', fault: 'broken' }]),
    ),
    means: 'midway',
  },
  'stalls in the middle': {
    ...elsewhere('timeout', 'upstream_timeout', () =>
      stream([opening + firstText, { kind: 'fault', fault: 'idle_timeout' }]),
    ),
    means: 'midway',
  },
  'fails in the middle': {
    ...elsewhere('error', 'upstream_error', () =>
      stream([opening + firstText, 'data: {"error":{"message":"no"}}\n\n', null]),
    ),
    means: 'midway',
  },
};

/** A kept connection that was found closed. */
export const stale: Behaviour = elsewhere('stale', 'upstream_unavailable', () => ({
  kind: 'fault',
  fault: 'stale',
}));

function answer(
  statusCode: number,
  contentType: string,
  parts: readonly (string | null | UpstreamFault)[],
): UpstreamAnswer {
  const left = [...parts];
  return {
    kind: 'answer',
    status: statusCode,
    contentType,
    retryAfterMs: null,
    ...bodyOf(async () => {
      const part = left.shift() ?? null;
      return typeof part === 'string' ? Buffer.from(part) : part;
    }),
    release: () => {},
  };
}
