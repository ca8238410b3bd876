import type { Clock } from '../domain/ports/clock.ts';
import type { UpstreamCall, UpstreamFault } from '../domain/ports/upstreams.ts';
import { BodyQueue, QueuedAnswer } from './body-queue.ts';
import type { Deadlines } from './body-queue.ts';
import type { Upstream } from './upstreams.ts';

const demoModel = 'demo';

/** The pause between two words, in milliseconds: about reading speed. */
const wordPauseMs = 40;

/** How much of the last message is quoted back, in characters. */
const maxQuotedChars = 200;

/** The fields of a Chat Completions request that the demo reads. */
interface DemoRequest {
  readonly messages: readonly { readonly role: string; readonly content: string }[];
  readonly max_tokens?: number;
  readonly stop?: readonly string[];
}

/**
 * A demo upstream inside the process, for trying the gateway without a provider. It answers in Chat Completions bytes at
 * reading speed, through the same queue, deadlines, pauses and aborts as an HTTP upstream.
 */
export function createDemoUpstream(deadlines: Deadlines, clock: Clock): Upstream {
  return {
    async call(call, signal) {
      if (signal.aborted) return interrupted;
      // Read before the queue is made: a body that can't be read must not leave its deadlines behind.
      const pieces = piecesOf(call);
      const interrupt = (): void => queue.stop(interrupted);
      const queue = new BodyQueue(clock, deadlines, queueMicrotask, () =>
        signal.removeEventListener('abort', interrupt),
      );
      signal.addEventListener('abort', interrupt, { once: true });
      play(pieces, queue, clock);
      const contentType = call.stream ? 'text/event-stream' : 'application/json';
      return new QueuedAnswer({ status: 200, contentType, retryAfterMs: null, limits: null }, queue);
    },
    close: async () => {},
  };
}

const interrupted: UpstreamFault = { kind: 'fault', fault: 'interrupted' };

/** The body, in the pieces in which it is sent: a list of models, or an answer. */
function piecesOf({ body, stream }: UpstreamCall): readonly string[] {
  if (body === null) return [JSON.stringify({ object: 'list', data: [{ id: demoModel, object: 'model' }] })];
  const request = JSON.parse(body) as DemoRequest;
  return stream ? streamFrames(request) : wholeBody(request);
}

/** Pushes the pieces one by one, each after its pause, until all are pushed or the queue aborts. */
function play(pieces: readonly string[], queue: BodyQueue, clock: Clock): void {
  const encoder = new TextEncoder();
  let next = 0;
  let paused = false;
  let cancel = clock.schedule(wordPauseMs, step);
  function step(): void {
    if (paused) return;
    const piece = pieces[next++];
    if (piece === undefined) return queue.finish(null);
    queue.push(encoder.encode(piece));
    cancel = clock.schedule(wordPauseMs, step);
  }
  queue.attach({
    pause: () => (paused = true),
    resume() {
      paused = false;
      cancel();
      cancel = clock.schedule(wordPauseMs, step);
    },
    abort: () => cancel(),
  });
}

function streamFrames(request: DemoRequest): readonly string[] {
  const { words, reason, usage } = compose(request);
  return [
    frame([{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }]),
    ...words.map((word) => frame([{ index: 0, delta: { content: word }, finish_reason: null }])),
    frame([{ index: 0, delta: {}, finish_reason: reason }]) + frame([], { usage }) + 'data: [DONE]\n\n',
  ];
}

function frame(choices: readonly unknown[], extra: object = {}): string {
  const chunk = { id: 'chatcmpl-demo', object: 'chat.completion.chunk', created: 0, model: demoModel };
  return `data: ${JSON.stringify({ ...chunk, choices, ...extra })}\n\n`;
}

function wholeBody(request: DemoRequest): readonly string[] {
  const { words, reason, usage } = compose(request);
  const message = { role: 'assistant', content: words.join('') };
  return [
    JSON.stringify({
      id: 'chatcmpl-demo',
      object: 'chat.completion',
      created: 0,
      model: demoModel,
      choices: [{ index: 0, message, finish_reason: reason }],
      usage,
    }),
  ];
}

/** The answer, cut at the request's stop sequences and token limit as a model's would be; a word counts as a token. */
function compose({ messages, max_tokens: cap, stop = [] }: DemoRequest): {
  words: readonly string[];
  reason: 'stop' | 'length';
  usage: Record<string, number>;
} {
  const question = messages.findLast(({ role }) => role === 'user')?.content ?? '';
  const quoted = question.length > maxQuotedChars ? `${question.slice(0, maxQuotedChars)}…` : question;
  const text =
    `Hello from textgate. You wrote: "${quoted}". I am the built-in demo, not a language model: ` +
    'set TEXTGATE_UPSTREAM_URL to the address of a real one, and the same request will reach it.';
  const ends = stop.map((sequence) => text.indexOf(sequence)).filter((at) => at !== -1);
  const whole = splitWords(text.slice(0, Math.min(text.length, ...ends)));
  const words = cap === undefined ? whole : whole.slice(0, cap);
  const promptTokens = messages.reduce((sum, { content }) => sum + splitWords(content).length, 0);
  return {
    words,
    reason: words.length < whole.length ? 'length' : 'stop',
    usage: {
      prompt_tokens: promptTokens,
      completion_tokens: words.length,
      total_tokens: promptTokens + words.length,
    },
  };
}

/** Words with the space after them: joined, they are the text again. */
function splitWords(text: string): readonly string[] {
  return text.match(/\S+\s*|\s+/g) ?? [];
}
