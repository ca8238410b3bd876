import { createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { sendToParent } from '../send-to-parent.ts';
import { failedAnswer, stampedText, streamOf, timedText, wholeOf } from './frames.ts';
import { everyText, readSettings } from './settings.ts';
import type { SimulatorSettings } from './settings.ts';
import { machineMs } from './times.ts';

/**
 * An upstream in a process of its own, on plain sockets with bytes made in advance, so that it is not what is measured.
 * It sends Chat Completions as the prompt's settings say; every path with `/failing/` is answered with a 503. Any message
 * releases the streams that are held open: they end.
 */

/** The longest head and body that are read, in bytes. */
const maxRequestBytes = 1_048_576;

const nothing = Buffer.alloc(0);

/** Streams that wait for the release. */
const held = new Set<() => void>();

function serve(socket: Socket): void {
  let received: Buffer[] = [];
  let size = 0;
  let wantedBytes = 0;
  socket.setNoDelay(true);
  socket.on('error', () => socket.destroy());
  socket.on('data', (bytes: Buffer) => {
    received.push(bytes);
    size += bytes.length;
    if (size > maxRequestBytes) socket.destroy();
    if (size < wantedBytes) return;
    const all = received.length === 1 ? bytes : Buffer.concat(received);
    const headEnd = all.indexOf('\r\n\r\n');
    if (headEnd < 0) return;
    const head = all.toString('latin1', 0, headEnd);
    const [, length = '0'] = /\r\ncontent-length: *(\d+)/i.exec(head) ?? [];
    wantedBytes = headEnd + 4 + Number(length);
    if (size < wantedBytes) return;
    const body = all.toString('latin1', headEnd + 4, wantedBytes);
    received = [];
    size = 0;
    wantedBytes = 0;
    answer(socket, head, body);
  });
}

function answer(socket: Socket, head: string, body: string): void {
  if (head.slice(0, head.indexOf('\r\n')).includes('/failing/')) return void socket.write(failedAnswer);
  const settings = readSettings(body);
  if (!/"stream": ?true/.test(body)) return void socket.write(wholeOf(settings));
  if (settings.endless === 1) return flood(socket, settings);
  if (settings.intervalMs === 0 && settings.firstTextMs === 0) return blast(socket, settings);
  return pace(socket, settings, machineMs());
}

/** Sends a stream as fast as it is taken, in the writes that were asked for. */
function blast(socket: Socket, settings: SimulatorSettings): void {
  const { opening, writes, ending } = streamOf(settings);
  socket.write(opening);
  for (const bytes of writes) socket.write(bytes);
  socket.write(ending);
}

/** Sends text without end, as fast as it is taken, and never more than the socket's buffer ahead of the reader. */
function flood(socket: Socket, settings: SimulatorSettings): void {
  const { opening, writes } = streamOf(settings);
  socket.write(opening);
  const more = (): void => {
    while (!socket.destroyed && writes.every((bytes) => socket.write(bytes)));
  };
  socket.on('drain', more);
  more();
}

/** Sends a stream at its pace: the role, the first text in time, and the rest at intervals. */
function pace(socket: Socket, settings: SimulatorSettings, arrivedMs: number): void {
  const { opening, text, ending } = streamOf(settings);
  let left = settings.textEvents;
  let timer: NodeJS.Timeout | undefined;
  const finish = (): void => {
    clearInterval(timer);
    held.delete(finish);
    socket.off('close', finish);
    if (!socket.destroyed) socket.write(ending);
  };
  const next = (): void => {
    if (settings.timed === everyText) socket.write(stampedText(machineMs()), 'latin1');
    else socket.write(text);
    left--;
    if (left === 0 && settings.held === 0) finish();
  };
  socket.once('close', finish);
  if (settings.held === 1) held.add(finish);
  const begin = (before: Buffer): void => {
    const first = settings.timed === 0 ? text : timedText({ arrivedMs, textMs: machineMs() });
    socket.write(before.length === 0 ? first : Buffer.concat([before, first]));
    left--;
    timer = setInterval(next, settings.intervalMs);
  };
  if (settings.roleAheadMs === 0) {
    timer = setTimeout(() => begin(opening), settings.firstTextMs);
    return;
  }
  timer = setTimeout(() => {
    socket.write(opening);
    timer = setTimeout(() => begin(nothing), settings.roleAheadMs);
  }, settings.firstTextMs - settings.roleAheadMs);
}

const server = createServer(serve);
server.listen({ port: 0, host: '127.0.0.1', backlog: 4_096 }, () =>
  sendToParent((server.address() as AddressInfo).port),
);
process.on('message', () => held.forEach((finish) => finish()));
process.once('disconnect', () => process.exit());
