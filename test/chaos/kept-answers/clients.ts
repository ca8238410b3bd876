import { setTimeout as wait } from 'node:timers/promises';
import { textOf } from '../cuts/ask.ts';
import { answerTo } from './sized-texts.ts';

/** A question, and how it is asked. */
export interface SizedQuestion {
  readonly number: number;
  readonly protocol: 'chat' | 'responses';
  readonly stream: boolean;
  /** The secret of the key that asks. */
  readonly secret: string;
  readonly isNamed: boolean;
}

/**
 * How a client reads: nothing behind the first part until it goes on, then this many bytes a second for so long, in milliseconds,
 * and then as fast as it can.
 */
export interface Pace {
  readonly goesOn: Promise<void>;
  readonly bytesPerSecond: number;
  readonly forMs: number;
}

/**
 * What has become of a client:
 * - `complete`: it has the whole text, and its end;
 * - `wrong`: it has another text, or a part, that passes for complete;
 * - `cut`: its connection was cut before the end;
 * - `gone`: it was told that the answer is not kept;
 * - `crowded`: it was told that too many clients join;
 * - else the status and the code of another refusal.
 */
type Outcome = 'complete' | 'wrong' | 'cut' | 'gone' | 'crowded' | `${number} ${string}`;

/** Asks a question; `pace` is `null` for a client that reads as fast as it can. */
export async function askSized(url: string, question: SizedQuestion, pace: Pace | null): Promise<Outcome> {
  const { number, protocol, stream, secret, isNamed } = question;
  const isChat = protocol === 'chat';
  const content = String(number);
  const said = isChat ? { messages: [{ role: 'user', content }] } : { input: content };
  const chunks: Uint8Array[] = [];
  let response: Response;
  try {
    response = await fetch(`${url}/v1/${isChat ? 'chat/completions' : 'responses'}`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${secret}`,
        'content-type': 'application/json',
        ...(isNamed ? { 'idempotency-key': `answer-${number}` } : {}),
      },
      body: JSON.stringify({ model: 'small', stream, ...said }),
    });
    let untilMs: number | null = null;
    for await (const chunk of response.body ?? []) {
      chunks.push(chunk);
      if (pace === null) continue;
      await pace.goesOn;
      untilMs ??= performance.now() + pace.forMs;
      const readMs = (chunk.length / pace.bytesPerSecond) * 1_000;
      await wait(Math.min(readMs, Math.max(0, untilMs - performance.now())));
    }
  } catch {
    return 'cut';
  }
  const body = Buffer.concat(chunks).toString();
  if (response.status !== 200) {
    const { code } = (JSON.parse(body) as { error: { code: string } }).error;
    if (code === 'replay_unavailable') return 'gone';
    return code === 'concurrency_limit_exceeded' ? 'crowded' : `${response.status} ${code}`;
  }
  try {
    return textOf(body, question) === answerTo(number).text ? 'complete' : 'wrong';
  } catch {
    // A connection that ends in order, behind a stream that has no end, is no complete answer to a client either.
    return 'cut';
  }
}
