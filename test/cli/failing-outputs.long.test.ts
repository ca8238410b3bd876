import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import {
  hasFullDevice,
  openBrokenPipe,
  openFullDevice,
  openStalledPipe,
} from '../support/failing-outputs.ts';
import { canMount, mountSmallDisk } from '../support/small-disk.ts';
import { startServing } from '../support/serving-process.ts';
import type { ServingProcess } from '../support/serving-process.ts';

/** How many requests are sent: the first line is lost, or waits for ever. */
const requests = 40;

/**
 * How long an idle process may take to end on SIGTERM, in milliseconds: five seconds, with a margin for a busy
 * machine.
 */
const endMs = 10_000;

/** Sends requests in parallel; returns the statuses of their answers. */
async function askMany(serving: ServingProcess): Promise<ReadonlySet<number>> {
  const statuses = new Set<number>();
  for (let asked = 0; asked < requests; asked += 20)
    for (const { status } of await Promise.all(Array.from({ length: 20 }, () => serving.ask())))
      statuses.add(status);
  return statuses;
}

async function expectAnswersAndEnd(serving: ServingProcess): Promise<void> {
  const statuses = await askMany(serving);
  expect(statuses).toEqual(new Set([200, 429]));
  expect((await fetch(`${serving.adminUrl}/healthz`)).status).toBe(200);
  const startedMs = performance.now();
  serving.server.signal('SIGTERM');
  expect((await serving.server.finished).code).toBe(0);
  expect(performance.now() - startedMs).toBeLessThan(endMs);
}

function droppedLines(metrics: string): number {
  return Number(/^textgate_log_lines_dropped_total (\d+)$/m.exec(metrics)?.[1]);
}

describe('a gateway that can’t write its log', () => {
  test.skipIf(!hasFullDevice)(
    'answers every request and ends on SIGTERM when standard output is full',
    async () => {
      const serving = await startServing({ stdout: openFullDevice() });
      await serving.ask();
      await serving.ask();
      expect(droppedLines(await serving.readMetrics())).toBeGreaterThan(0);
      await expectAnswersAndEnd(serving);
    },
    120_000,
  );

  test('answers every request and ends on SIGTERM when the reader of its pipe has stalled', async () => {
    await expectAnswersAndEnd(await startServing({ stdout: openStalledPipe() }));
  }, 120_000);

  test('answers every request and ends on SIGTERM when the reader of its pipe has ended', async () => {
    const serving = await startServing({ stdout: openBrokenPipe() });
    await serving.ask();
    await serving.ask();
    expect(droppedLines(await serving.readMetrics())).toBeGreaterThan(0);
    await expectAnswersAndEnd(serving);
  }, 120_000);

  test.skipIf(!hasFullDevice)(
    'answers every request and ends on SIGTERM when standard error is full, too',
    async () => {
      const full = openFullDevice();
      await expectAnswersAndEnd(await startServing({ stdout: full, stderr: full }));
    },
    120_000,
  );

  test('answers every request and ends on SIGTERM when standard error has stalled, too', async () => {
    const stalled = openStalledPipe();
    await expectAnswersAndEnd(await startServing({ stdout: stalled, stderr: stalled }));
  }, 120_000);

  test.skipIf(!canMount())(
    'logs the number of lost lines when its disk has space again, and never joins parts of two lines',
    async () => {
      const disk = mountSmallDisk();
      const path = `${disk.folder}/log`;
      const { openSync, closeSync } = await import('node:fs');
      const file = openSync(path, 'a');
      const serving = await startServing({ stdout: file });
      await serving.ask();
      disk.fill();
      for (let count = 0; count < 30; count++) await serving.ask();
      disk.free();
      await serving.ask();
      // An answer may end before its line is written or dropped: the count is complete once the log has it.
      await eventually('the log has the number of lost lines', () =>
        readFileSync(path, 'utf8').includes('log lines dropped'),
      );
      const lost = droppedLines(await serving.readMetrics());
      expect(lost).toBeGreaterThan(0);
      serving.server.signal('SIGTERM');
      expect((await serving.server.finished).code).toBe(0);
      closeSync(file);
      const lines = readFileSync(path, 'utf8').split('\n');
      const whole = lines.flatMap((line) =>
        line.endsWith('}') ? [JSON.parse(line) as { msg: string }] : [],
      );
      expect(whole.filter(({ msg }) => msg === 'log lines dropped')).toMatchObject([
        { level: 40, lines: lost },
      ]);
      expect(whole.at(-1)).toMatchObject({ msg: 'request' });
    },
    120_000,
  );
});
