import { spawn, spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { Socket } from 'node:net';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { createLogDestination, openStandardStream } from '../../src/telemetry/log/log-destination.ts';
import { openStalledPipe } from '../support/failing-outputs.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';

/** A destination with room for ten bytes, and the writes of its sink, which the test completes one by one. */
function setUp(settings = {}) {
  const chunks: string[] = [];
  let end: (error: Error | null) => void = () => {};
  const destination = createLogDestination(
    (chunk, done) => {
      chunks.push(chunk);
      end = done;
    },
    (lines) => `lost ${lines}\n`,
    10,
    settings,
  );
  return { destination, chunks, end: (error: Error | null = null) => end(error) };
}

/** A pipe whose reader takes every write at once, and what was written to it. */
function openFastPipe() {
  const written: string[] = [];
  const write = (chunk: string, done: () => void): void => {
    written.push(chunk);
    process.nextTick(done);
  };
  return { stream: Object.assign(new Socket(), { fd: 1, write }), written };
}

describe('a log destination', () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  test('writes waiting lines in order, one write at a time', () => {
    const { destination, chunks, end } = setUp();
    for (const line of ['a\n', 'b\n', 'c\n']) destination.write(line);
    expect(chunks).toEqual(['a\n']);
    end();
    expect(chunks).toEqual(['a\n', 'b\nc\n']);
  });

  test('drops lines above its limit, counts them, and writes the count when writing continues', () => {
    const { destination, chunks, end } = setUp();
    for (const line of ['1234\n', '6789\n', 'x\n', 'y\n']) destination.write(line);
    expect(destination.droppedLines).toBe(2);
    end();
    expect(chunks).toEqual(['1234\n', 'lost 2\n6789\n']);
    end();
    destination.write('z\n');
    expect(chunks.at(-1)).toBe('z\n');
  });

  test('drops the lines of a failed write, and writes the sum of all losses with the first write that succeeds', () => {
    const { destination, chunks, end } = setUp();
    destination.write('a\n');
    end(new Error('ENOSPC'));
    expect(chunks).toEqual(['a\n']);
    destination.write('b\n');
    end(new Error('ENOSPC'));
    expect(destination.droppedLines).toBe(2);
    destination.write('c\n');
    expect(chunks.at(-1)).toBe('lost 2\nc\n');
    end();
    destination.write('d\n');
    expect(chunks.at(-1)).toBe('d\n');
  });

  test('writes a loss at once when no other line waits', () => {
    const { destination, chunks, end } = setUp();
    destination.write('123456789\n');
    destination.write('x\n');
    end();
    expect(chunks.at(-1)).toBe('lost 1\n');
  });

  test('flushes when its last write is done, and gives up on a write that hangs', async () => {
    const { destination, end } = setUp();
    expect(await destination.flush(0)).toBe(true);
    destination.write('a\n');
    expect(await destination.flush(1)).toBe(false);
    const flushed = destination.flush(60_000);
    end();
    expect(await flushed).toBe(true);
    destination.write('b\n');
    expect(await destination.flush(1)).toBe(false);
  });

  test('collects lines for some milliseconds after a write, unless they fill the next one', () => {
    vi.useFakeTimers();
    const { destination, chunks, end } = setUp({ collectMs: 10, batchBytes: 6 });
    destination.write('a\n');
    end();
    for (const line of ['b\n', 'c\n']) destination.write(line);
    vi.advanceTimersByTime(9);
    expect(chunks).toEqual(['a\n']);
    vi.advanceTimersByTime(1);
    expect(chunks).toEqual(['a\n', 'b\nc\n']);
    end();
    for (const line of ['d\n', 'e\n', 'f\n', 'g\n']) destination.write(line);
    expect(chunks).toEqual(['a\n', 'b\nc\n', 'd\ne\nf\n']);
    end();
    expect(chunks).toHaveLength(3);
    vi.advanceTimersByTime(10);
    expect(chunks.at(-1)).toBe('g\n');
  });

  test('writes what it has collected when it is flushed', async () => {
    const { destination, chunks, end } = setUp({ collectMs: 60_000 });
    destination.write('a\n');
    end();
    expect(await destination.flush(0)).toBe(true);
    destination.write('b\n');
    expect(chunks).toEqual(['a\n']);
    const flushed = destination.flush(60_000);
    expect(chunks).toEqual(['a\n', 'b\n']);
    end();
    expect(await flushed).toBe(true);
  });

  test('writes all lines of one turn of the event loop to a pipe in two writes at most', async () => {
    const { stream, written } = openFastPipe();
    const destination = openStandardStream(stream, () => '');
    for (const line of ['a\n', 'b\n', 'c\n', 'd\n']) {
      destination.write(line);
      await new Promise<void>((resolve) => process.nextTick(resolve));
    }
    expect(await destination.flush(60_000)).toBe(true);
    expect(written).toEqual(['a\n', 'b\nc\nd\n']);
    stream.destroy();
  });

  test('loses no line on a pipe that takes everything, at several writes of lines in each turn of the event loop', async () => {
    const { stream, written } = openFastPipe();
    const destination = openStandardStream(stream, () => '');
    const [turns, linesPerTurn, line] = [60, 250, `${'x'.repeat(999)}\n`];
    for (let turn = 0; turn < turns; turn++) {
      for (let count = 0; count < linesPerTurn; count++) setImmediate(() => destination.write(line));
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
    expect(await destination.flush(60_000)).toBe(true);
    expect(destination.droppedLines).toBe(0);
    expect(written.join('').length).toBe(turns * linesPerTurn * line.length);
    expect(written.length).toBeLessThan(turns * linesPerTurn * 0.1);
    stream.destroy();
  });

  test('has pieces of at most 4,096 bytes where other processes write to the same output, so that no line is torn', async () => {
    const { stream, written } = openFastPipe();
    const destination = openStandardStream(stream, () => '', true);
    const lines = Array.from({ length: 100 }, (_, index) => `${String(index).padStart(699, '0')}\n`);
    for (const line of lines) destination.write(line);
    await destination.flush(1_000);
    expect(written.join('')).toBe(lines.join(''));
    expect(Math.max(...written.map(({ length }) => length))).toBe(3_500);
  });

  test('adds one error listener to a standard stream, however many destinations share it', () => {
    const stream = Object.assign(new Socket(), { fd: 1 });
    for (let count = 0; count < 20; count++) openStandardStream(stream, () => '');
    expect(stream.listenerCount('error')).toBe(1);
    stream.destroy();
  });
});

/** `script` of util-linux runs a command on a terminal, and reads the terminal only as fast as its own output is read. */
const hasScript = spawnSync('script', ['--version']).status === 0;

test.skipIf(!hasScript)(
  'a paused terminal does not stop the process that logs to it',
  async () => {
    const folder = makeTemporaryFolder();
    const logger = pathToFileURL(
      join(import.meta.dirname, '..', '..', 'src', 'telemetry', 'log', 'logger.ts'),
    ).href;
    const program = `
    import { writeFileSync } from 'node:fs';
    import { createLog } from '${logger}';
    const log = createLog('info', { now: Date.now });
    for (let count = 0; count < 20_000; count++) log.fault('it broke', new Error('x'.repeat(500)));
    setTimeout(async () => {
      await log.close();
      writeFileSync('done', String(process.stdout.isTTY) + ' ' + log.droppedLines);
      process.exit(0);
    }, 50);`;
    const command = `${process.execPath} --input-type=module -e "$PROGRAM"`;
    const child = spawn('script', ['-qec', command, '/dev/null'], {
      cwd: folder,
      env: { ...process.env, PROGRAM: program },
      stdio: ['ignore', openStalledPipe(), 'inherit'],
    });
    const done = join(folder, 'done');
    try {
      await expect.poll(() => existsSync(done), { timeout: 60_000 }).toBe(true);
      await expect.poll(() => readFileSync(done, 'utf8')).toMatch(/^true [1-9]\d+$/);
    } finally {
      child.kill('SIGKILL');
    }
  },
  120_000,
);
