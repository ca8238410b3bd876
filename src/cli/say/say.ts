import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { json } from 'node:stream/consumers';
import { SseParser } from '../../protocol/sse.ts';
import { escapeControlCharacters } from '../../shared/control-characters.ts';
import { forTerminal } from '../output.ts';
import { isConnectionFault } from '../send-request.ts';
import { readChat, readResponses } from './answer-text.ts';
import { callGateway } from './call-gateway.ts';
import { findTarget } from './find-target.ts';
import type { Target } from './find-target.ts';
import { FrameSplitter, writeFrame } from './frames.ts';
import { readQuestion } from './question.ts';
import { writeReceipt } from './receipt.ts';

/** The options of `textgate say`. */
export interface SayOptions {
  readonly url?: string;
  readonly key?: string;
  readonly model?: string;
  readonly responses?: true;
  readonly frames?: true;
}

/** The exit code of shells for a command that Ctrl-C has ended. */
const cancelledCode = 130;

/** Asks one question and prints the answer as it comes. Throws if it is refused, fails, or is not whole. */
export async function say(words: string, options: SayOptions): Promise<void> {
  const target = await findTarget(options);
  const question = await readQuestion(words);
  const cancelling = new AbortController();
  const { signal } = cancelling;
  process.once('SIGINT', () => cancelling.abort());
  // The reader of a pipe has had enough, as `head`.
  process.stdout.on('error', () => cancelling.abort());
  try {
    const model = options.model ?? (await firstModel(target, signal));
    await ask({ target, question, model, signal, ...options });
  } catch (error) {
    if (!signal.aborted) throw error;
    console.error(forTerminal('textgate: cancelled'));
    process.exitCode = cancelledCode;
  }
}

/** The first model that the key may use. */
async function firstModel(target: Target, signal: AbortSignal): Promise<string> {
  const response = await callGateway(target, '/v1/models', signal);
  const { data = [] } = (await json(response)) as { readonly data?: readonly { readonly id: string }[] };
  const [first] = data;
  if (first === undefined) throw new Error('no model is on offer to this key');
  return first.id;
}

interface Asked extends SayOptions {
  readonly target: Target;
  readonly question: string;
  readonly model: string;
  readonly signal: AbortSignal;
}

async function ask({ target, question, model, signal, responses, frames }: Asked): Promise<void> {
  const startedMs = performance.now();
  const sinceMs = (): number => performance.now() - startedMs;
  const response = await (responses
    ? callGateway(target, '/v1/responses', signal, { model, stream: true, input: question })
    : callGateway(target, '/v1/chat/completions', signal, {
        model,
        stream: true,
        stream_options: { include_usage: true },
        messages: [{ role: 'user', content: question }],
      }));
  const answer = responses ? readResponses() : readChat();
  let firstTextMs: number | null = null;
  let last = '\n';
  let broken: string | null = null;
  try {
    for await (const frame of framesOf(response)) {
      const atMs = sinceMs();
      const text = textOf(frame, answer);
      if (text !== '') firstTextMs ??= atMs;
      const shown = forOutput(frames ? `${writeFrame(frame, atMs)}\n` : text);
      if (shown !== '') last = shown.at(-1) ?? last;
      await write(shown);
    }
  } catch (error) {
    // What is wrong with the answer itself has its own words; that of a broken connection has a code.
    if (signal.aborted || !isConnectionFault(error)) throw error;
    broken = 'the answer was cut off: the connection broke';
  } finally {
    if (last !== '\n') await write('\n');
  }
  const totalMs = sinceMs();
  const id = response.headers['x-request-id'];
  if (process.stderr.isTTY && typeof id === 'string') {
    const receipt = await writeReceipt(target, id, { firstTextMs, totalMs }, signal);
    console.error(forTerminal(receipt));
  }
  const fault = answer.fault();
  if (fault !== null) throw new Error(broken ?? fault);
}

async function* framesOf(response: IncomingMessage): AsyncGenerator<string> {
  if (response.headers['content-type']?.startsWith('text/event-stream') !== true) {
    // Otherwise the process would not end before the answer does.
    response.destroy();
    throw new Error('the answer is no stream of events: this is no gateway');
  }
  const splitter = new FrameSplitter();
  response.setEncoding('utf8');
  for await (const text of response as AsyncIterable<string>) yield* splitter.push(text);
  yield* splitter.end();
}

/** The text in a frame; empty in a comment. */
function textOf(frame: string, answer: ReturnType<typeof readChat>): string {
  const parser = new SseParser();
  return parser
    .push(`${frame}\n\n`)
    .map((event) => answer.take(event))
    .join('');
}

/** What a terminal executes instead of displaying it, but for line feeds and tabs. An emoji may have a joiner, which stays. */
const executed = /[^\P{Cc}\n\t]/gu;

/** A text for standard output: on a terminal, it must not control it. */
function forOutput(text: string): string {
  return process.stdout.isTTY ? text.replaceAll(executed, escapeControlCharacters) : text;
}

/** Writes to standard output, and waits while its reader is behind. */
async function write(text: string): Promise<void> {
  if (text !== '' && !process.stdout.write(text)) await once(process.stdout, 'drain');
}
