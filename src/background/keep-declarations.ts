import type { DeclarationChanges, DeclaredKey } from '../domain/keys/declared-key.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { DeclaredHashes } from '../domain/ports/keys.ts';
import type { ReportFault } from '../domain/ports/telemetry.ts';
import { within } from '../domain/within.ts';

/** How long requests with a declared key wait until the declarations are stored, in milliseconds. */
const storeLimitMs = 10_000;

/** The pause after declarations that could not be stored, in milliseconds. */
const retryMs = 5_000;

/** What keeping declarations needs. */
interface DeclarationTools {
  readonly clock: Clock;
  /** Gets the declared keys of each config, at once. */
  readonly directory: { declare(declared: DeclaredHashes): void };
  /** Makes the stored keys the declared ones. */
  readonly store: (declared: readonly DeclaredKey[]) => Promise<DeclarationChanges>;
  /** Resolves when the database can be written; rejects when it never can be. */
  readonly ready: Promise<void>;
  readonly onFault: ReportFault;
  /** Called with what a config has changed. */
  readonly onChange: (changes: DeclarationChanges) => void;
}

/** The keys that the config in force declares. */
export interface Declarations {
  /**
   * Declares these keys instead of those before: the others are refused at once, and these are found as soon as they are
   * stored. Storing that fails is tried again until it succeeds or other keys are declared.
   */
  declare(keys: readonly DeclaredKey[]): void;
  /** Resolves when the keys declared last are stored; rejects with the reason when they could not be. */
  stored(): Promise<void>;
  /** Stops trying. */
  stop(): void;
}

/** Keeps the stored keys those that are declared. */
export function keepDeclarations(tools: DeclarationTools): Declarations {
  const { clock, directory, ready, onFault } = tools;
  let current: readonly DeclaredKey[] = [];
  let cancelRetry: (() => void) | null = null;
  let last: Promise<void> = ready;
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

  function declare(keys: readonly DeclaredKey[]): void {
    cancelRetry?.();
    current = keys;
    const hashes = new Set(keys.map(({ hash }) => hash));
    const written = write(keys, last);
    last = written;
    directory.declare({ hashes, stored: isDoneInTime(written, clock) });
    written.then(
      () => {
        // Storing may have taken longer than requests wait for it.
        if (keys === current) directory.declare({ hashes, stored: Promise.resolve(true) });
      },
      (error: unknown) => {
        // A database that can't be opened has failed the start, which reports it.
        if (!isReady || keys !== current) return;
        onFault('declared keys could not be stored', error, { count: keys.length });
        cancelRetry = clock.schedule(retryMs, () => declare(keys));
      },
    );
  }

  return {
    declare,
    stored: () => last,
    stop() {
      cancelRetry?.();
      current = [];
    },
  };
}

/** Resolves with whether the keys are stored before requests stop waiting for that. */
async function isDoneInTime(written: Promise<void>, clock: Clock): Promise<boolean> {
  const isStored = written.then(
    () => true,
    () => false,
  );
  const done = isStored.then(() => {});
  return (await within(done, storeLimitMs, clock)) && isStored;
}
