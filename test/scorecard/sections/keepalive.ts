import { once } from 'node:events';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import type { Acknowledged } from '../../chaos/numbered-client.ts';
import { startNumberedUpstream } from '../../chaos/numbered-upstream.ts';
import { seededNumbers } from '../../support/random-numbers.ts';
import { publicKinds, question } from '../request-kinds.ts';
import type { Section } from '../section.ts';
import { startSubject } from '../subject.ts';

const connections = 200;
/** What the gateway announces for a client's idle connection, and how much longer it keeps it, in milliseconds. */
const announcedMs = 65_000;
const slackMs = 1_000;
/** How long before and after the close a second request is sent, in milliseconds: half of them within a tenth of that. */
const aroundMs = 50;
/** How long a client waits for an answer before it counts as lost, in milliseconds. */
const patienceMs = 20_000;

export const section: Section = {
  name: 'keepalive',
  title: 'Requests at the end of a connection’s keep-alive',
  about:
    `Connections with one answered request get a second one at the announced end of their keep-alive, or within ${aroundMs} ms ` +
    'of their close. At the announced end each must be answered; around the close each is answered whole, or the ' +
    'connection closes without a byte of an answer, and then the request was not run and is not charged.',
  async run({ seed, scale, log }) {
    const random = seededNumbers(seed);
    const upstream = await startNumberedUpstream();
    const subject = await startSubject({ name: 'keepalive', upstreamUrl: upstream.url });
    const bytes = publicKinds(subject.key).find(({ name }) => name === 'a chat, whole')?.bytes ?? '';
    const acknowledged: Acknowledged = new Map();
    const faults: string[] = [];
    const endings = { answered: 0, closed: 0 };
    let [number, early] = [Number(question), 0];

    /** One request on a connection; resolves with whether it was answered, `false` if it closed without a byte. */
    const ask = async (socket: Socket): Promise<boolean> => {
      const asked = ++number;
      const answer = await answerOn(socket, bytes.replace(question, String(asked)));
      if (answer === '') return false;
      const requestId = /x-request-id: (\S+)/i.exec(answer)?.[1] ?? '';
      if (/^HTTP\/1\.1 200 [^]*\r\n\r\n\{[^]*\}$/.test(answer)) acknowledged.set(requestId, asked);
      else faults.push(`request ${asked} got a part of an answer: ${answer.slice(0, 40)}`);
      return true;
    };
    const race = async (spread: number, index: number): Promise<void> => {
      await wait(index * 10);
      const { hostname, port } = new URL(subject.served.url);
      const socket = connect({ port: Number(port), host: hostname, noDelay: true }).on('error', () => {});
      await once(socket, 'connect');
      if (!(await ask(socket)))
        return void faults.push(`connection ${index}: the first request was not answered`);
      const isEarly = index % 4 === 0;
      await wait(isEarly ? announcedMs : announcedMs + slackMs + spread);
      const isAnswered = await ask(socket);
      socket.destroy();
      if (isEarly) early++;
      if (isEarly && !isAnswered) faults.push(`connection ${index}: closed before the announced end`);
      if (!isEarly) endings[isAnswered ? 'answered' : 'closed']++;
    };
    log(`waits ${(announcedMs + slackMs) / 1_000} s for the end of the keep-alive`);
    const spreads = Array.from(
      { length: Math.ceil(connections * scale) },
      () => (2 * random() - 1) * aroundMs * (random() < 0.5 ? 0.1 : 1),
    );
    await Promise.all(spreads.map(race));
    if (upstream.served.size !== acknowledged.size)
      faults.push(
        `the upstream served ${upstream.served.size} requests, of which ${acknowledged.size} were answered`,
      );
    faults.push(...(await subject.finish(acknowledged, upstream.served)));
    upstream.close();
    return {
      cases: early + endings.answered + endings.closed,
      facts: [
        ['at the announced end, all answered', early],
        ['around the close: answered whole', endings.answered],
        ['around the close: closed, not run', endings.closed],
      ],
      faults,
    };
  },
};

/** Sends a request; resolves with its whole answer, or with what had come when the connection closed. */
function answerOn(socket: Socket, bytes: string): Promise<string> {
  return new Promise((resolve) => {
    let text = '';
    const timer = setTimeout(() => socket.destroy(), patienceMs);
    const end = (): void => {
      clearTimeout(timer);
      socket.off('data', read).off('close', end);
      resolve(text);
    };
    const read = (chunk: Buffer): void => {
      text += chunk.toString();
      const length = Number(/content-length: (\d+)/i.exec(text)?.[1] ?? NaN);
      if (text.length >= text.indexOf('\r\n\r\n') + 4 + length) end();
    };
    socket.on('data', read).once('close', end);
    if (socket.destroyed || !socket.writable) end();
    else socket.write(bytes);
  });
}
