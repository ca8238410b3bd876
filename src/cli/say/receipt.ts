import { json } from 'node:stream/consumers';
import { writeMs } from '../write-ms.ts';
import { callGateway } from './call-gateway.ts';
import type { Target } from './find-target.ts';

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
export async function writeReceipt(
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
