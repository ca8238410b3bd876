import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { json } from 'node:stream/consumers';
import { SseParser } from '../../protocol/sse.ts';
import { escapeControlCharacters } from '../../shared/control-characters.ts';
import { forTerminal, writeMs } from '../output.ts';
import { isConnectionFault, readStart } from '../send-request.ts';
import { readChat, readResponses, FrameSplitter, writeFrame } from './answer-text.ts';
import { callGateway, findTarget } from './call-gateway.ts';
import type { Target } from './call-gateway.ts';

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

/** The longest question from standard input, in characters. */
const maxQuestionChars = 16_777_216;

/** The question on the command line, or that on standard input. Throws if there is none. */
async function readQuestion(words: string): Promise<string> {
  if (words !== '' && words !== '-') return words;
  if (words === '' && process.stdin.isTTY)
    throw new Error('no question: give one, as in textgate say "Say hello"');
  const question = await readStart(process.stdin, maxQuestionChars);
  if (question.length > maxQuestionChars)
    throw new Error(`the question has more than ${maxQuestionChars} characters`);
  const trimmed = question.replace(/\s+$/, '');
  if (trimmed === '') throw new Error('no question: standard input is empty');
  return trimmed;
}

/** The times of an answer, from its request on, in milliseconds. */
interface AnswerTimes {
  readonly firstTextMs: number | null;
  readonly totalMs: number;
}

interface Receipt {
  readonly usage: { readonly input_tokens: number; readonly output_tokens: number } | null;
  readonly charge: string;
}

/** A line about an answer that has ended: what was counted and charged, by its receipt, and its times. */
async function writeReceipt(
  target: Target,
  requestId: string,
  { firstTextMs, totalMs }: AnswerTimes,
  signal: AbortSignal,
): Promise<string> {
  const path = `/v1/key/requests/${encodeURIComponent(requestId)}`;
  const receipt = await callGateway(target, path, signal)
    .then(async (response) => (await json(response)) as Receipt)
    .catch(() => null);
  const { usage = null, charge } = receipt ?? {};
  return [
    ...(usage === null ? [] : [`${usage.input_tokens} tokens in, ${usage.output_tokens} out`]),
    ...(charge === undefined ? [] : [`charge ${charge} USD`]),
    ...(firstTextMs === null ? [] : [`first text after ${writeMs(firstTextMs)}`]),
    `${writeMs(totalMs)} in total`,
    requestId,
  ].join('; ');
}
