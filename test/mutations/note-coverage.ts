import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { Session } from 'node:inspector/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const root = join(import.meta.dirname, '..', '..');
const sources = pathToFileURL(join(root, 'src/')).href;

/** What one test file ran. */
export interface Covered {
  readonly file: string;
  /** How long it took, in milliseconds. */
  readonly ms: number;
  /** Of each source, by its path, the parts inside of functions: where they begin and end, and how often each was run. */
  readonly parts: Readonly<Record<string, readonly (readonly [number, number, number])[]>>;
}

/** The name of the file with what a test file ran, which is another one when the test file changes. */
export function coverageName(file: string): string {
  const hash = createHash('sha256').update(readFileSync(join(root, file)));
  return `${file.replaceAll('/', '+')}.${hash.digest('hex').slice(0, 16)}.json`;
}

/** One for the life of a worker: V8 counts blocks only in code that it compiles afterwards. */
let session: Session | null = null;

async function openSession(): Promise<Session> {
  const opened = new Session();
  opened.connect();
  await opened.post('Profiler.enable');
  await opened.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
  return opened;
}

/** Begins to count what a test file runs; the returned function ends it, and writes it into a folder. */
export async function noteCoverage(folder: string): Promise<(file: string) => Promise<void>> {
  const opened = (session ??= await openSession());
  const begunMs = performance.now();
  return async (file) => {
    const { result } = await opened.post('Profiler.takePreciseCoverage');
    const parts: Record<string, [number, number, number][]> = {};
    for (const { url, functions } of result)
      if (url.startsWith(sources))
        parts[`src/${url.slice(sources.length)}`] = functions
          // The function that begins at 0 is the module, which runs once for all test files of a worker.
          .filter(({ ranges: [whole] }) => whole !== undefined && whole.startOffset > 0)
          .flatMap(({ ranges }) =>
            ranges.map(({ startOffset, endOffset, count }): [number, number, number] => [
              startOffset,
              endOffset,
              count,
            ]),
          );
    const covered: Covered = { file, ms: Math.round(performance.now() - begunMs), parts };
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, coverageName(file)), JSON.stringify(covered));
  };
}
