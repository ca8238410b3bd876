import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { seededNumbers } from '../../support/random-numbers.ts';
import { startQuestionServer } from '../question-server.ts';

/** The size of the shortest and of the longest answer, in UTF-16 code units: an answer is kept up to 131,072 of them. */
const [fewestChars, mostChars] = [100, 160_000];

/**
 * The sizes of the deltas of answers, in UTF-16 code units, and for how many of twenty: the small ones take most of the time of
 * a run, and of the memory of a stream.
 */
const deltaSizes = [
  ...Array.from({ length: 9 }, () => 2_000),
  ...Array.from({ length: 7 }, () => 200),
  ...Array.from({ length: 3 }, () => 20),
  2,
];

/** Of how many answers one has characters that take two bytes in memory. */
const wideEvery = 4;

const half = (letters: string): string => {
  const random = seededNumbers(letters.length);
  return Array.from({ length: mostChars * 2 }, () => letters[Math.floor(random() * letters.length)]).join('');
};
/** What answers are cut from, each from a place of its own. */
const narrow = half('abcdefghijklmnopqrstuvwxyz      "');
const wide = half('這是一個很長的答案 ');

/** An answer of the provider, which its number alone decides. */
interface SizedAnswer {
  readonly text: string;
  readonly deltaChars: number;
}

/** The answer to a question: sizes are spread evenly over their powers. */
export function answerTo(question: number): SizedAnswer {
  const random = seededNumbers(question);
  const chars = Math.floor(fewestChars * (mostChars / fewestChars) ** random());
  const deltaChars = deltaSizes[Math.floor(random() * deltaSizes.length)] ?? 1;
  const begin = Math.floor(random() * mostChars);
  return { text: (question % wideEvery === 0 ? wide : narrow).slice(begin, begin + chars), deltaChars };
}

/** A provider that gives these answers as fast as they are read. */
export interface SizedTexts {
  readonly url: string;
  /** How often each question was asked. */
  readonly calls: ReadonlyMap<number, number>;
  close(): void;
}

export async function startSizedTexts(): Promise<SizedTexts> {
  const calls = new Map<number, number>();
  const { origin, close } = await startQuestionServer(({ prompt, stream }, response) => {
    const question = Number(prompt);
    calls.set(question, (calls.get(question) ?? 0) + 1);
    const { text, deltaChars } = answerTo(question);
    if (stream) void sendDeltas(response, text, deltaChars);
    else sendWhole(response, text);
  });
  return { url: `${origin}/v1`, calls, close };
}

/** Roughly what an answer has of tokens. */
function usageOf({ length }: string) {
  const completion = Math.ceil(length / 4);
  return { prompt_tokens: 10, completion_tokens: completion, total_tokens: 10 + completion };
}

function sendWhole(response: ServerResponse, content: string): void {
  const choices = [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }];
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(
    JSON.stringify({
      id: 'x',
      object: 'chat.completion',
      created: 1,
      model: 'm',
      choices,
      usage: usageOf(content),
    }),
  );
}

/** How much is written at a time, in bytes. */
const writeBytes = 32_768;

async function sendDeltas(response: ServerResponse, text: string, deltaChars: number): Promise<void> {
  const chunk = (choices: unknown[], extra = {}): string =>
    `data: ${JSON.stringify({ id: 'x', object: 'chat.completion.chunk', created: 1, model: 'm', choices, ...extra })}\n\n`;
  const choice = (delta: object, reason: string | null = null): string =>
    chunk([{ index: 0, delta, finish_reason: reason }]);
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const closed = once(response, 'close').catch(() => {});
  let waiting = choice({ role: 'assistant', content: '' });
  for (let begin = 0; begin < text.length && !response.destroyed; begin += deltaChars) {
    waiting += choice({ content: text.slice(begin, begin + deltaChars) });
    if (waiting.length < writeBytes) continue;
    if (!response.write(waiting)) await Promise.race([closed, once(response, 'drain').catch(() => {})]);
    waiting = '';
  }
  response.end(`${waiting}${choice({}, 'stop')}${chunk([], { usage: usageOf(text) })}data: [DONE]\n\n`);
}
