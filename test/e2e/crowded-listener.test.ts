import { readFileSync } from 'node:fs';
import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { startServing } from '../support/serving-process.ts';

/** How many connections come at once: far more than Node's own limit, and fewer than where the system's usually is. */
const clients = 1_000;
const allowed = Number(readFileSync('/proc/sys/net/core/somaxconn', 'utf8'));

test.skipIf(allowed < clients)(
  `connections that come while the process is busy wait to be accepted, and are answered (needs net.core.somaxconn of ${clients})`,
  async () => {
    const { server, url } = await startServing();
    const pid = server.pid ?? 0;
    process.kill(pid, 'SIGSTOP');
    const sockets = Array.from({ length: clients }, () =>
      connect({ port: Number(new URL(url).port), host: '127.0.0.1' }),
    );
    onTestFinished(() => {
      for (const socket of sockets) socket.destroy();
    });
    // Without room the system drops what opens a connection, and tries again as long as the process stands still.
    await Promise.all(sockets.map((socket) => once(socket, 'connect')));
    process.kill(pid, 'SIGCONT');
    const answers = sockets.map((socket) => {
      socket.write('GET /v1/models HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
      return once(socket, 'data') as Promise<[Buffer]>;
    });
    const [answer] = await Promise.race(answers);
    expect(answer.toString('latin1')).toMatch(/^HTTP\/1\.1 401 /);
  },
);
