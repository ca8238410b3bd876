import { createHash } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { setTimeout as wait } from 'node:timers/promises';
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';
import { chatFrames } from '../../support/scripted-upstream.ts';
import { startQuestionServer } from '../question-server.ts';
import type { Observations } from './observations.ts';

/** The words that are in each prompt, and in each delta of an answer, of a run: nothing else has them. */
export interface Words {
  readonly prompt: string;
  readonly answer: string;
}

/** The words of the run with a seed. */
export function wordsOf(seed: number): Words {
  const word = (of: string): string =>
    createHash('sha256').update(`${of} ${seed}`).digest('hex').slice(0, 16);
  return { prompt: `asked${word('prompt')}`, answer: `said${word('answer')}` };
}

/** What is asked. */
export function promptOf(question: number, { prompt }: Words): string {
  return `${prompt} ${question}`;
}

/** The deltas of the answer to a question. */
export function textsOf(question: number, { answer: word }: Words): readonly string[] {
  return Array.from({ length: 8 }, (_, at) => `${word}, part ${at} of ${question}, ${'é'.repeat(at)} `);
}

/** About what a prompt has. */
const promptTokens = 21;

/** What an answer has used: what it has of tokens, so that one that was stopped costs no more than a whole one. */
function usageOf(question: number, words: Words) {
  const [prompt, completion] = [promptTokens, countTokens(textsOf(question, words).join(''))];
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
  };
}

/** The price of the one model, in USD for a million tokens. */
export const price = { input: '1', output: '2' };

/** What a question costs, in nano-USD. */
export function costNanosOf(question: number, words: Words): number {
  const { prompt_tokens: prompt, completion_tokens: completion } = usageOf(question, words);
  return 1_000 * (prompt * Number(price.input) + completion * Number(price.output));
}

/** A provider whose answers depend on the number that is asked alone. */
export interface NumberedTexts {
  /** Its address for the process of a gateway that has a number of its own. */
  urlFor(process: number): string;
  /** How often each question was asked. */
  readonly calls: ReadonlyMap<number, number>;
  close(): void;
}

export interface NumberedTextsOptions {
  readonly words: Words;
  readonly observations: Observations;
  /** How long the answer to a question takes, in milliseconds. */
  readonly answerMs: (question: number) => number;
}

export async function startNumberedTexts({
  words,
  observations,
  answerMs,
}: NumberedTextsOptions): Promise<NumberedTexts> {
  const calls = new Map<number, number>();
  const { origin, close } = await startQuestionServer(({ path, prompt, stream }, response) => {
    const question = Number(prompt.split(' ').at(-1));
    const process = Number(path.split('/')[1]);
    const call = observations.nextNumber();
    calls.set(question, (calls.get(question) ?? 0) + 1);
    observations.note(question, { what: 'called', call, process });
    let hasEnded = false;
    const end = (what: 'answered' | 'cut off'): void => {
      if (!hasEnded) observations.note(question, { what, call, process });
      hasEnded = true;
    };
    response.on('close', () => end('cut off'));
    const onWhole = (): void => end('answered');
    void answer(response, { question, words, stream, tookMs: answerMs(question), onWhole });
  });
  return { urlFor: (process) => `${origin}/${process}/v1`, calls, close };
}

interface Answer {
  readonly question: number;
  readonly words: Words;
  readonly stream: boolean;
  readonly tookMs: number;
  /** Called when all of the text is about to be sent: a client may have it before anything else is seen of that. */
  readonly onWhole: () => void;
}

/** Answers as providers do, bit by bit: a connection may break in the middle. */
async function answer(
  response: ServerResponse,
  { question, words, stream, tookMs, onWhole }: Answer,
): Promise<void> {
  const texts = textsOf(question, words);
  if (!stream) {
    await wait(tookMs);
    const message = { role: 'assistant', content: texts.join('') };
    const usage = usageOf(question, words);
    const choices = [{ index: 0, message, finish_reason: 'stop' }];
    response.writeHead(200, { 'content-type': 'application/json' });
    onWhole();
    response.end(
      JSON.stringify({ id: 'x', object: 'chat.completion', created: 1, model: 'm', choices, usage }),
    );
    return;
  }
  const frames = chatFrames(texts, 'stop', usageOf(question, words));
  // Of an answer that takes no time, all is sent at once.
  const pauseMs = tookMs / (frames.length + 1);
  if (pauseMs > 0) await wait(pauseMs);
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const last = frames.pop() ?? '';
  for (const frame of frames) {
    response.write(frame);
    if (pauseMs > 0) await wait(pauseMs);
  }
  onWhole();
  response.end(last);
}
