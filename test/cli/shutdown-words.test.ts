import { setImmediate } from 'node:timers/promises';
import { expect, onTestFinished, test, vi } from 'vitest';
import { endOnSignalOrFault } from '../../src/cli/serve/shutdown.ts';
import type { ComposedGateway } from '../../src/gateway.ts';

/** The handlers of a process whose gateway never finishes closing, and what it says on standard error. */
function openProcess(delayMs: number) {
  const handlers = new Map<unknown, (value?: unknown) => void>();
  const on = vi.spyOn(process, 'on').mockImplementation((name, handler) => {
    handlers.set(name, handler as (value?: unknown) => void);
    return process;
  });
  const failed = Promise.withResolvers<Error>();
  const over = Promise.withResolvers<void>();
  const never = new Promise<void>(() => {});
  const gateway = {
    failed: failed.promise,
    leave: () => ({ delayMs, over: over.promise }),
    close: () => never,
    crash: () => never,
    closeLimitMs: () => 2_000_000_000,
  } as unknown as ComposedGateway;
  const said: string[] = [];
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  endOnSignalOrFault(gateway, { write: (text: string) => void said.push(text) } as never, null);
  on.mockRestore();
  return {
    said,
    act: {
      signal: () => handlers.get('SIGTERM')?.(),
      crash: () => handlers.get('uncaughtException')?.(new Error('x')),
      loseDatabase: () => failed.resolve(new Error('the file was deleted')),
      endDelay: () => over.resolve(),
    },
  };
}

const [waiting, delayed, lost] = [
  'textgate: shutting down; waiting for requests in progress\n',
  'textgate: shutting down in 10s; requests are taken until then\n',
  'textgate: shutting down: the file was deleted; waiting for requests in progress\n',
];

test.each([
  ['a signal and its delay', ['signal', 'endDelay'], [delayed, waiting]],
  ['a lost database during the delay', ['signal', 'loseDatabase', 'endDelay'], [delayed, lost]],
  ['a lost database after the delay', ['signal', 'endDelay', 'loseDatabase'], [delayed, waiting, lost]],
  ['a crash during the delay', ['signal', 'crash', 'endDelay'], [delayed]],
  ['a signal after a lost database', ['loseDatabase', 'signal', 'endDelay'], [lost]],
] as const)(
  '%s: standard error says once that the process shuts down, and why',
  async (_name, acts, expected) => {
    const { said, act } = openProcess(10_000);
    for (const name of acts) {
      act[name]();
      await setImmediate();
    }
    expect(said).toEqual(expected);
  },
);

test('a process whose gateway does not close after an uncaught error is ended at the deadline, with code 1', () => {
  const { act } = openProcess(0);
  const execve = vi.spyOn(process, 'execve').mockImplementation((() => {}) as never);
  const kill = vi.spyOn(process, 'kill').mockReturnValue(true);
  onTestFinished(() => {
    for (const replaced of [execve, kill]) replaced.mockRestore();
  });
  act.crash();
  vi.advanceTimersByTime(4_499);
  expect(kill).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1);
  expect(execve).toHaveBeenCalledWith('/bin/false', ['false'], {});
  // Where the system does not have that program.
  expect(kill).toHaveBeenCalledWith(process.pid, 'SIGKILL');
});
