import type { DeclarationReport, DeclaredKey } from '../domain/keys/declared-key.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { DeclaredHashes } from '../domain/ports/key-store.ts';
import type { ReportFault } from '../domain/ports/telemetry.ts';
import { within } from '../domain/time-limit.ts';

/** How long requests with a declared key wait until the declarations are stored, in milliseconds. */
const storeLimitMs = 10_000;

/** The pause after declarations that could not be stored, in milliseconds. */
const retryMs = 5_000;

/** What keeping declarations needs. */
interface DeclarationTools {
  readonly clock: Clock;
  /** Gets the declared keys of each config at once, and again when they are stored; each time it reads all keys anew. */
  readonly directory: { declare(declared: DeclaredHashes): void };
  /** Makes the stored keys the declared ones. */
  readonly store: (declared: readonly DeclaredKey[]) => Promise<DeclarationReport>;
  /** Resolves when the database can be written; rejects when it never can be. */
  readonly ready: Promise<void>;
  readonly onFault: ReportFault;
  /** Called with what a config has changed. */
  readonly onChange: (changes: DeclarationReport) => void;
}

/** Keeps the stored keys those that the config in force declares. */
export function keepDeclarations(tools: DeclarationTools) {
  const { clock, directory, ready, onFault } = tools;
  let current: readonly DeclaredKey[] | null = [];
  let cancelRetry: (() => void) | null = null;
  /** The end of the last write that was begun, and of the one that stands for the keys declared last. */
  let lastWrite: Promise<void> = ready;
  let last: Promise<void> = ready;
  let lastInTime: Promise<boolean> = Promise.resolve(true);
  let isReady = false;
  ready.then(
    () => (isReady = true),
    () => {},
  );

  async function write(keys: readonly DeclaredKey[], before: Promise<void>): Promise<void> {
    // One after the other: an earlier config must not overwrite a later one.
    await before.catch(() => {});
    await ready;
    if (keys === current) tools.onChange(await tools.store(keys));
  }

  /**
   * Ends with a write, or with that of the keys declared after it: until then a request that waits for this one would
   * not find a key that both configs declare.
   */
  async function untilCurrent(keys: readonly DeclaredKey[], written: Promise<void>): Promise<void> {
    const isSuperseded = (): boolean => current !== null && keys !== current;
    try {
      await written;
    } catch (error) {
      if (!isSuperseded()) throw error;
    }
    if (isSuperseded()) await last;
  }

  /**
   * Declares these keys instead of those before: the others are refused at once, and these are found as soon as they are
   * stored. Storing that fails is tried again until it succeeds or other keys are declared; meanwhile requests with them
   * are refused at once.
   */
  function declare(keys: readonly DeclaredKey[]): void {
    cancelRetry?.();
    current = keys;
    const hashes = new Set(keys.map(({ hash }) => hash));
    directory.declare({ hashes, stored: tryToStore(keys, hashes) });
  }

  /**
   * Writes the keys, and again after a pause if that fails. A retry is no new declaration: the directory would empty its
   * cache. Resolves with whether the keys are stored before requests stop waiting for that.
   */
  function tryToStore(keys: readonly DeclaredKey[], hashes: ReadonlySet<string>): Promise<boolean> {
    lastWrite = write(keys, lastWrite);
    const written = untilCurrent(keys, lastWrite);
    last = written;
    lastInTime = within(written, storeLimitMs, clock);
    written.then(
      () => {
        // Storing may have taken longer than requests wait for it.
        if (keys === current) directory.declare({ hashes, stored: Promise.resolve(true) });
      },
      (error: unknown) => {
        // A database that can't be opened has failed the start, which reports it.
        if (!isReady || keys !== current) return;
        onFault('declared keys could not be stored', error, { count: keys.length });
        cancelRetry = clock.schedule(retryMs, () => void tryToStore(keys, hashes));
      },
    );
    return lastInTime;
  }

  return {
    declare,
    /** Resolves with whether the keys declared last are stored, within the time for which requests wait for that. */
    stored: () => lastInTime,
    /** Stops trying. */
    stop(): void {
      cancelRetry?.();
      current = null;
    },
  };
}
