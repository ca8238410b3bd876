/** Answers received whole: the number of the question by request id. */
export type Acknowledged = Map<string, number>;

let lastNumber = 0;

/** Asks one question, streamed or whole, and records its answer if it is received whole. Resolves with the status. */
export async function askNumber(
  url: string,
  key: string,
  stream: boolean,
  acknowledged: Acknowledged,
): Promise<number> {
  const number = ++lastNumber;
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'small', stream, messages: [{ role: 'user', content: String(number) }] }),
  });
  const text = await response.text();
  const isWhole = stream ? text.endsWith('data: [DONE]\n\n') : text.endsWith('}') && response.status === 200;
  if (isWhole) acknowledged.set(response.headers.get('x-request-id') ?? '', number);
  return response.status;
}
