import { once } from 'node:events';
import { connect } from 'node:net';
import { askNumber } from '../../chaos/numbered-client.ts';
import type { Acknowledged } from '../../chaos/numbered-client.ts';
import { metricsOf } from '../gateway-state.ts';
import { publicKinds, question } from '../request-kinds.ts';
import type { Subject } from '../subject.ts';

/** What the requests of a day share. */
interface Day {
  readonly subject: Subject;
  readonly random: () => number;
  /** A number that no other request has asked, as long as the one in each kind of request. */
  readonly nextQuestion: () => string;
  readonly acknowledged: Acknowledged;
}

/** Sends one request; resolves with what was wrong with its ending, `null` if nothing was. */
type DayRequest = (day: Day) => Promise<string | null>;

/** How long a client reads a stream before it leaves, at most, in milliseconds. */
const maxReadingMs = 6;

async function askResponses({ subject, random, nextQuestion }: Day): Promise<string | null> {
  const stream = random() < 0.5;
  const text = await post(subject, '/v1/responses', { model: 'small', stream, input: nextQuestion() });
  return text.body.includes('"status":"completed"') ? null : `a response ended with ${text.status}`;
}

async function askAndLeave({ subject, random, nextQuestion }: Day): Promise<null> {
  const streamed = publicKinds(subject.key).find(({ name }) => name === 'a chat, streamed')?.bytes ?? '';
  const { hostname, port } = new URL(subject.served.url);
  const socket = connect({ port: Number(port), host: hostname }).on('error', () => {});
  const closed = once(socket, 'close');
  socket.once('data', () => setTimeout(() => socket.resetAndDestroy(), random() * maxReadingMs));
  socket.write(streamed.replace(question, nextQuestion()));
  await closed;
  return null;
}

/** A request that must end with this status. */
function refused(status: number, bodyOf: (day: Day) => object | string, key?: string): DayRequest {
  return async (day) => {
    const found = await post(day.subject, '/v1/chat/completions', bodyOf(day), key);
    return found.status === status
      ? null
      : `a request that must end with ${status} ended with ${found.status}`;
  };
}

async function changeKeys({ subject, random }: Day): Promise<string | null> {
  const name = `key ${random().toString(36)}`;
  const { id } = (await subject.served.ask('POST', '/keys', { name })) as { id: string };
  await subject.served.ask('PATCH', `/keys/${id}`, { concurrency: 3 });
  const gone = (await subject.served.ask('DELETE', `/keys/${id}`)) as { id?: string };
  return gone.id === id ? null : `a key could not be revoked: ${JSON.stringify(gone)}`;
}

async function post({ served, key }: Subject, path: string, body: object | string, secret = key) {
  const response = await fetch(served.url + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
  return { status: response.status, body: await response.text() };
}

const messages = [{ role: 'user', content: 'x' }];

/** The requests of an ordinary day with their shares, which add up to 1. */
const dayRequests: Readonly<Record<string, readonly [share: number, request: DayRequest]>> = {
  'chats, whole and streamed': [
    0.6,
    async ({ subject, random, acknowledged }) => {
      const status = await askNumber(subject.served.url, subject.key, random() < 0.5, acknowledged);
      return status === 200 ? null : `a chat ended with ${status}`;
    },
  ],
  'responses, whole and streamed': [0.19, askResponses],
  'clients that leave': [0.1, askAndLeave],
  'an upstream that is away': [0.04, refused(502, () => ({ model: 'away', messages }))],
  'unknown models': [0.02, refused(404, ({ random }) => ({ model: random().toString(36), messages }))],
  'broken bodies': [0.02, refused(400, () => '{"model":')],
  'wrong keys': [0.02, refused(401, () => ({ model: 'small', messages }), 'sk-wrong')],
  'reads of the metrics': [
    0.007,
    async ({ subject }) =>
      (await metricsOf(subject.served)).includes('textgate_requests_total')
        ? null
        : 'the metrics are not whole',
  ],
  'keys made, changed and revoked': [0.003, changeKeys],
};

/** One of them, as often as its share says. */
export function oneOfDay(random: () => number): readonly [string, DayRequest] {
  let left = random();
  for (const [name, [share, request]] of Object.entries(dayRequests)) {
    left -= share;
    if (left < 0) return [name, request];
  }
  return ['clients that leave', askAndLeave];
}
