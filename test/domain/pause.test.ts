import { expect, test } from 'vitest';
import { readPages } from '../../src/domain/pause.ts';

/** Reads the numbers from 1 to a last one, two at a time; resolves with all that was read, waited for and handed out. */
async function steps(upTo: number, pause?: () => Promise<void>): Promise<readonly string[]> {
  const done: string[] = [];
  const read = async (last: number | null): Promise<readonly number[]> => {
    done.push(`read behind ${last}`);
    const first = (last ?? 0) + 1;
    return [first, first + 1].filter((number) => number <= upTo);
  };
  const waiting = async (): Promise<void> => {
    done.push('pause');
    await pause?.();
  };
  try {
    for await (const page of readPages(read, 2, waiting)) done.push(page.join(' '));
  } catch (error) {
    done.push((error as Error).message);
  }
  return done;
}

test('pages are read behind each other, with a pause between two, up to one that is not full', async () => {
  expect(await steps(3)).toEqual(['read behind null', '1 2', 'pause', 'read behind 2', '3']);
});

test('an empty page is not handed out', async () => {
  expect(await steps(0)).toEqual(['read behind null']);
  expect(await steps(2)).toEqual(['read behind null', '1 2', 'pause', 'read behind 2']);
});

test('a pause that rejects ends the reading', async () => {
  const stopped = async (): Promise<void> => {
    throw new Error('stopped');
  };
  expect(await steps(3, stopped)).toEqual(['read behind null', '1 2', 'pause', 'stopped']);
});
