import { Agent, request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import { readAnswerBody } from '../../support/client-answer.ts';
import { rawPost } from '../../support/raw-socket.ts';
import { modelNames, passedPath, tags } from './settings.ts';
import { promptOf } from './upstreams.ts';

/** How long a client waits for its answer before that counts as none, in milliseconds. */
const longestMs = 40_000;

/** What a client says that waited that long: nothing explains it. */
export const noEndInTime = 'no end of the answer in time';

/** How long a client that never reads stays, in milliseconds. */
const unreadMs = 3_000;

const endpoints = { chat: '/v1/chat/completions', responses: '/v1/responses', passed: passedPath } as const;

/** One request to a gateway, as its client knows it. Times are on the monotonic clock of this process, in milliseconds. */
export interface Sent {
  readonly number: number;
  /** The index of the gateway. */
  readonly node: number;
  readonly keyId: string;
  readonly protocol: keyof typeof endpoints;
  readonly isStream: boolean;
  readonly promptChars: number;
  readonly startedMs: number;
  endedMs: number | null;
  /** 0 without an answer. */
  status: number;
  requestId: string;
  body: string;
  /** Whether the answer came to the end that HTTP says. */
  isEnded: boolean;
  /** Whether the client left, or never read. */
  hasLeft: boolean;
  /**
   * Whether the gateway may have closed its connection without reading it: a kept one on which nothing ran, or one on
   * which an answer before had said `connection: close`.
   */
  mayBeUnread: boolean;
  /** Whether an answer before it on its connection had begun and broke off, which HTTP can only tell by closing it. */
  isBehindBroken: boolean;
  fault: string | null;
}

interface Target {
  readonly node: number;
  readonly url: string;
  readonly keyId: string;
  readonly secret: string;
}

/** Clients that ask gateways in every way. */
export interface Clients {
  readonly sent: readonly Sent[];
  /** Sends a request, or several on one connection, and resolves when nothing more comes. Never rejects. */
  ask(target: Target): Promise<void>;
  /** Closes all kept connections. */
  close(): void;
}

interface Asked {
  readonly sent: Sent;
  readonly path: string;
  readonly body: object;
  readonly headers: Readonly<Record<string, string>>;
}

export function createClients(random: () => number): Clients {
  const sent: Sent[] = [];
  const kept = new Agent({ keepAlive: true });
  const chance = (share: number): boolean => random() < share;
  const one = <Thing>(things: readonly Thing[]): Thing =>
    things[Math.floor(random() * things.length)] as Thing;

  const draw = ({ node, keyId }: Target): Asked => {
    const number = sent.length;
    const kind = random();
    const protocol = kind < 0.08 ? 'passed' : kind < 0.55 ? 'chat' : 'responses';
    const isStream = protocol !== 'passed' && chance(0.6);
    const prompt = promptOf(number, Math.floor(random() * 300));
    const cap = chance(0.4) ? 60 : undefined;
    const bodies = {
      chat: { messages: [{ role: 'user', content: prompt }], max_tokens: cap },
      responses: { input: prompt, max_output_tokens: cap },
      passed: { input: prompt, model: 'passed' },
    };
    const asked: Sent = {
      number,
      node,
      keyId,
      protocol,
      isStream,
      promptChars: prompt.length,
      startedMs: performance.now(),
      endedMs: null,
      status: 0,
      requestId: '',
      body: '',
      isEnded: false,
      hasLeft: false,
      mayBeUnread: false,
      isBehindBroken: false,
      fault: null,
    };
    sent.push(asked);
    const shown = protocol === 'passed' ? {} : { model: one(modelNames), stream: isStream };
    return {
      sent: asked,
      path: endpoints[protocol],
      body: { ...shown, ...bodies[protocol] },
      headers: chance(0.3) ? { 'x-textgate-tag': one(tags) } : {},
    };
  };

  return {
    sent,
    async ask(target) {
      const drawn = random();
      if (drawn < 0.06) return pipeline(target, [draw(target), draw(target), draw(target)], false);
      if (drawn < 0.1) return pipeline(target, [draw(target), draw(target)], true);
      const leavesMs = chance(0.15) ? random() * 2_500 : null;
      return askOne(target, draw(target), chance(0.5) ? kept : null, leavesMs);
    },
    close: () => kept.destroy(),
  };
}

function askOne(
  { url, secret }: Target,
  { sent, path, body, headers }: Asked,
  agent: Agent | null,
  leavesMs: number | null,
): Promise<void> {
  return new Promise((resolve) => {
    const text = JSON.stringify(body);
    const request = httpRequest(url + path, {
      method: 'POST',
      agent: agent ?? false,
      headers: {
        authorization: `Bearer ${secret}`,
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(text),
        ...headers,
      },
    });
    const end = (fault: string | null): void => {
      if (sent.endedMs !== null) return;
      clearTimeout(timer);
      clearTimeout(leaving);
      sent.endedMs = performance.now();
      sent.mayBeUnread = request.reusedSocket;
      sent.fault = fault;
      resolve();
    };
    const timer = setTimeout(() => {
      request.destroy();
      end(noEndInTime);
    }, longestMs);
    const leave = (): void => {
      if (sent.endedMs !== null) return;
      sent.hasLeft = true;
      request.destroy();
      end(null);
    };
    const leaving = leavesMs === null ? undefined : setTimeout(leave, leavesMs);
    request.on('error', ({ message }) => end(message));
    request.on('response', (response) => {
      sent.status = response.statusCode ?? 0;
      sent.requestId = String(response.headers['x-request-id'] ?? '');
      response.setEncoding('utf8').on('data', (chunk: string) => (sent.body += chunk));
      response.on('error', ({ message }) => end(message));
      response.on('close', () => {
        sent.isEnded = response.complete;
        end(response.complete ? null : 'the connection broke within the answer');
      });
    });
    request.end(text);
  });
}

/** Sends several requests at once on a connection, and reads all answers, or nothing. */
function pipeline({ url, secret }: Target, asked: readonly Asked[], isUnread: boolean): Promise<void> {
  return new Promise((resolve) => {
    const { hostname, port } = new URL(url);
    const socket = connect({ host: hostname, port: Number(port) });
    let text = '';
    const end = (fault: string | null): void => {
      clearTimeout(timer);
      socket.destroy();
      const answers = splitAnswers(text);
      asked.forEach(({ sent }, at) => {
        if (sent.endedMs !== null) return;
        sent.endedMs = performance.now();
        sent.hasLeft = isUnread;
        const before = answers.slice(0, at);
        sent.mayBeUnread = before.some(({ saysClose }) => saysClose);
        sent.isBehindBroken = before.some(({ isEnded }) => !isEnded);
        const answer = answers[at];
        Object.assign(sent, answer ?? {}, { fault: answer?.isEnded === true ? null : fault });
      });
      if (answers.length > asked.length && asked[0] !== undefined)
        asked[0].sent.fault = `${answers.length} answers to ${asked.length} requests`;
      resolve();
    };
    const timer = setTimeout(() => end(noEndInTime), isUnread ? unreadMs : longestMs);
    if (isUnread) socket.pause();
    socket.setEncoding('utf8').on('data', (chunk: string) => {
      text += chunk;
      const answers = splitAnswers(text);
      if (answers.length >= asked.length && answers.every(({ isEnded }) => isEnded)) end(null);
    });
    socket.on('error', ({ message }) => end(message));
    socket.on('close', () => end('the connection broke'));
    for (const { path, body } of asked) socket.write(rawPost(path, secret, body));
  });
}

interface RawAnswer extends Pick<Sent, 'status' | 'requestId' | 'body' | 'isEnded'> {
  /** Whether no further request of the connection is read. */
  readonly saysClose: boolean;
}

/** The answers on a connection, as far as they have come: bodies with a length, or in chunks. */
export function splitAnswers(text: string): RawAnswer[] {
  const found: RawAnswer[] = [];
  for (let left = text; left !== '';) {
    const headEnd = left.indexOf('\r\n\r\n');
    if (headEnd < 0) break;
    const head = left.slice(0, headEnd);
    left = left.slice(headEnd + 4);
    const status = Number(/^HTTP\/1\.1 (\d+)/.exec(head)?.[1]);
    const requestId = /^x-request-id: (.*)$/im.exec(head)?.[1]?.trim() ?? '';
    const length = /^content-length: (\d+)$/im.exec(head)?.[1];
    const saysClose = /^connection: *close$/im.test(head);
    let body = '';
    let isEnded = false;
    if (length !== undefined) {
      // Everything here is ASCII, so bytes are characters.
      body = left.slice(0, Number(length));
      isEnded = left.length >= Number(length);
      left = left.slice(Number(length));
    } else {
      for (;;) {
        const size = /^([0-9a-f]+)\r\n/i.exec(left);
        const bytes = Number.parseInt(size?.[1] ?? '', 16);
        const from = size?.[0].length ?? 0;
        if (size === null || left.length < from + bytes + 2) break;
        body += left.slice(from, from + bytes);
        left = left.slice(from + bytes + 2);
        isEnded = bytes === 0;
        if (isEnded) break;
      }
      if (!isEnded) left = '';
    }
    found.push({ status, requestId, body, isEnded, saysClose });
  }
  return found;
}

/** What a client reads in its protocol; `null` if nothing of it can be read. */
export function readSent({
  protocol,
  isStream,
  status,
  body,
}: Sent): ReturnType<typeof readAnswerBody> | null {
  if (protocol === 'passed' || status === 0) return null;
  const isFrames = isStream && status === 200;
  const frames = isFrames ? body.replaceAll(/^:.*\n+/gm, '') : body;
  // A stream that broke off may end within an event.
  const whole = isFrames ? frames.slice(0, frames.lastIndexOf('\n\n') + 2) : frames;
  if (whole === '') return null;
  try {
    return readAnswerBody(protocol, isFrames, whole);
  } catch {
    return null;
  }
}
