import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { constants, setPriority } from 'node:os';
import { setTimeout as wait } from 'node:timers/promises';
import { randomNumbers } from '../support/random-numbers.ts';

/**
 * The attackers of `hostile-edge.ts`, in a process of their own, so that their load is not measured as the gateway's.
 * Opens connections of every kind without a key, a limited number at a time, and reports their number by kind.
 */

const [address = '', total = '', atATime = ''] = process.argv.slice(2);
const { hostname, port } = new URL(address);
const { random } = randomNumbers();

/** The longest duration of one connection, in milliseconds: longer than the gateway tolerates silence. */
const maxLifeMs = 12_000;

/** How many are opened per second at most: a larger flood would measure the cores, not the gateway. */
const perSecond = 100;

/** The number of source addresses, beside that of the paying client. */
const addresses = 8;

// Real attackers have machines of their own: their load must not take processor time from the gateway.
setPriority(constants.priority.PRIORITY_LOW);

const json = 'Host: x\r\nContent-Type: application/json\r\n';
const head = `POST /v1/chat/completions HTTP/1.1\r\n${json}`;
const whole = `${head}Content-Length: 12\r\n\r\n{"model": 1}`;
const list = 'GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n';
const chunk = Buffer.from(`10000\r\n${'x'.repeat(0x10000)}\r\n`);

const writeOn = (socket: Socket): void => {
  while (!socket.destroyed && socket.write(chunk));
};

/** The attacks by kind: what a connection does once it is open. It is destroyed after its time at the latest. */
const attacks: Readonly<Record<string, (socket: Socket) => void>> = {
  'CONNECT, then a reset': (socket) =>
    void socket.write('CONNECT x:1 HTTP/1.1\r\nHost: x:1\r\n\r\n', () => socket.resetAndDestroy()),
  'CONNECT with a body, then a reset': (socket) =>
    void socket.write('CONNECT x:1 HTTP/1.1\r\nHost: x:1\r\nContent-Length: 9\r\n\r\nx', () =>
      socket.resetAndDestroy(),
    ),
  'half of a request, then our half closed': (socket) =>
    void socket.end(whole.slice(0, 1 + Math.floor(random() * whole.length))),
  'a reset at any point': (socket) =>
    void socket.write(whole.slice(0, Math.floor(random() * (whole.length + 1))) || ' ', () =>
      setTimeout(() => socket.resetAndDestroy(), random() * 10),
    ),
  'a thousand pipelined requests, never read': (socket) => {
    socket.pause();
    socket.write(list.repeat(1_000));
  },
  'pipelined requests without end, never read': (socket) => {
    socket.pause();
    const timer = setInterval(() => {
      if (!socket.writableNeedDrain) socket.write(list.repeat(20));
    }, 20);
    socket.once('close', () => clearInterval(timer));
  },
  'a refused body without end': (socket) => {
    socket.write(`${head}Transfer-Encoding: chunked\r\n\r\n`);
    socket.on('drain', () => writeOn(socket));
    writeOn(socket);
  },
  'a head a byte at a time': (socket) => {
    let at = 0;
    const timer = setInterval(() => socket.write(whole[at++ % whole.length] ?? ''), 100);
    socket.once('close', () => clearInterval(timer));
  },
  silence: () => {},
};

const counts: Record<string, number> = {};
let opened = 0;

function attack(): Promise<void> {
  const names = Object.keys(attacks);
  const name = names[Math.floor(random() * names.length)] ?? '';
  const localAddress = `127.0.0.${2 + (opened++ % addresses)}`;
  counts[name] = (counts[name] ?? 0) + 1;
  return new Promise((resolve) => {
    const socket = connect({ port: Number(port), host: hostname, localAddress });
    const end = (): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve();
    };
    // A socket that is reset while closing never emits 'close'.
    const timer = setTimeout(end, maxLifeMs);
    socket.on('error', () => {});
    socket.on('data', () => {});
    socket.once('connect', () => attacks[name]?.(socket));
    socket.once('close', end);
  });
}

const startedMs = performance.now();
async function work(): Promise<void> {
  while (opened < Number(total)) {
    const leftMs = startedMs + (opened * 1_000) / perSecond - performance.now();
    if (leftMs > 0) await wait(Math.ceil(leftMs));
    else await attack();
  }
}

await Promise.all(Array.from({ length: Number(atATime) }, work));
process.send?.(counts);
process.disconnect?.();
