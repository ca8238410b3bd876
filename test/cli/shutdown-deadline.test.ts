import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createDeadline } from '../../src/cli/serve/shutdown.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const closeLimitMs = 50_000;
const rescueMs = 600_000;
const crashMs = 4_500;

test.each([
  ['a signal', ['signal'], closeLimitMs],
  ['a crash', ['crash'], crashMs],
  ['a lost database', ['failure'], closeLimitMs + rescueMs],
  ['a lost database while it drains', ['signal', 'failure'], closeLimitMs + rescueMs],
  ['a crash while it drains', ['signal', 'crash'], crashMs],
  ['a crash while the database may be rescued', ['failure', 'crash'], closeLimitMs + rescueMs],
  ['a lost database after a crash', ['crash', 'failure'], closeLimitMs + rescueMs],
  ['a signal after a crash', ['crash', 'signal'], crashMs],
  ['a second crash', ['crash', 'crash'], crashMs],
] as const)('%s ends the process exactly at its deadline', (_name, kinds, limitMs) => {
  const end = vi.fn<() => void>();
  const deadline = createDeadline({ closeLimitMs: () => closeLimitMs }, end);
  for (const kind of kinds) deadline(kind);
  vi.advanceTimersByTime(limitMs - 1);
  expect(end).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1);
  expect(end).toHaveBeenCalledOnce();
});
