import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { call } from '../support/call-socket.ts';
import { eventually } from '../support/eventually.ts';
import { sayTexts, startUpstream } from '../support/scripted-upstream.ts';
import { serveWorkers, workersIn } from '../support/served-workers.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';
import { createDatabase, postgresAbsence } from '../support/test-postgres.ts';

test.skipIf(postgresAbsence !== null)(
  'several workers share a socket; a stale file is replaced, and the socket is removed at the end',
  async () => {
    const [database, upstream] = await Promise.all([createDatabase(), startUpstream()]);
    onTestFinished(async () => {
      await upstream.close();
      await database.drop();
    });
    const socket = join(makeTemporaryFolder(), 'textgate.sock');
    leaveStale(socket);
    upstream.play(sayTexts(['x']));
    const served = await serveWorkers({
      databaseUrl: database.url,
      upstreamUrl: upstream.url,
      server: { port: undefined, socket },
    });
    const small = { model: 'small', messages: [{ role: 'user', content: 'x' }] };
    for (let count = 0; count < 8; count++)
      expect((await call(socket, '/v1/chat/completions', served.key, small))[0]).toBe(200);
    await eventually('both have logged requests', () => workersIn(served.server.output()).size === 2);
    served.server.signal('SIGTERM');
    await served.server.finished;
    expect(existsSync(socket)).toBe(false);
  },
);

/** Leaves the file of a socket on which no process listens. */
function leaveStale(path: string): void {
  const script = `require('node:net').createServer().listen(${JSON.stringify(path)}, () => process.kill(process.pid, 'SIGKILL'))`;
  spawnSync(process.execPath, ['-e', script]);
  expect(existsSync(path)).toBe(true);
}
