import { describe, expect, test } from 'vitest';
import { createProgress } from '../../src/cli/progress.ts';
import { createFakeClock } from '../support/fake-clock.ts';

function show(isTTY: boolean) {
  const clock = createFakeClock();
  let written = '';
  const output = { isTTY, write: (text: string) => ((written += text), true) };
  return { clock, progress: createProgress(output, clock), written: () => written };
}

describe('progress', () => {
  test('is one line of a terminal, changed at most once per second, and removed at the end', () => {
    const { clock, progress, written } = show(true);
    for (const text of ['a', 'b']) progress.show(text);
    clock.advance(999);
    progress.show('c');
    clock.advance(1);
    progress.show('d');
    progress.clear();
    progress.clear();
    expect(written()).toBe('\r\x1b[Ka\r\x1b[Kd\r\x1b[K');
  });

  test('is not written where there is no terminal', () => {
    const { progress, written } = show(false);
    progress.show('a');
    progress.clear();
    expect(written()).toBe('');
  });
});
