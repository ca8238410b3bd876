import { questionsPerKey } from './numbered-upstream.ts';

/** Answers received whole: the number of the question by request id. */
export type Acknowledged = Map<string, number>;

/** What became of a question. */
export interface NumberedAnswer {
  readonly number: number;
  /** The status; 0 without an answer. */
  readonly status: number;
  /** The code of the error, if it is one. */
  readonly code: string | null;
  readonly retryAfter: string | null;
  readonly requestId: string;
  /** Whether it was received to its end, and is no error. */
  readonly isWhole: boolean;
  /** The failure of the connection: before the head of the answer where the status is 0, otherwise within it. */
  readonly fault: string | null;
}

let lastNumber = 0;

/** Asks one question of a key by its number, streamed or whole. Never rejects. */
export async function askQuestion(
  url: string,
  { secret, number: keyNumber }: { readonly secret: string; readonly number: number },
  stream: boolean,
): Promise<NumberedAnswer> {
  const number = keyNumber * questionsPerKey + ++lastNumber;
  const asked = { number, status: 0, code: null, retryAfter: null, requestId: '', isWhole: false };
  let head: Response | null = null;
  let text = '';
  let fault: string | null = null;
  try {
    head = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'small', stream, messages: [{ role: 'user', content: String(number) }] }),
    });
    text = await head.text();
  } catch (error) {
    const { message, cause } = error as Error;
    fault = cause instanceof Error ? `${message}: ${cause.message}` : message;
  }
  if (head === null) return { ...asked, fault };
  const { status, headers } = head;
  return {
    number,
    status,
    code: status === 200 ? null : codeOf(text),
    retryAfter: headers.get('retry-after'),
    requestId: headers.get('x-request-id') ?? '',
    isWhole: stream ? text.endsWith('data: [DONE]\n\n') : status === 200 && text.endsWith('}'),
    fault,
  };
}

/** Asks one question, streamed or whole, and records its answer if it is received whole. Resolves with the status. */
export async function askNumber(
  url: string,
  secret: string,
  stream: boolean,
  acknowledged: Acknowledged,
): Promise<number> {
  const { requestId, number, isWhole, status, fault } = await askQuestion(url, { secret, number: 0 }, stream);
  if (isWhole) acknowledged.set(requestId, number);
  if (status === 0) throw new Error(fault ?? 'there was no answer');
  return status;
}

function codeOf(text: string): string | null {
  try {
    return (JSON.parse(text) as { error?: { code?: string } }).error?.code ?? null;
  } catch {
    return null;
  }
}
