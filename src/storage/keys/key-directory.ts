import { LRUCache } from 'lru-cache';
import { isUsable, isWellFormed, mayBeImported } from '../../domain/keys/api-key.ts';
import type { ApiKey } from '../../domain/keys/api-key.ts';
import { isGuessable } from '../../domain/keys/guessable-key.ts';
import type { Clock } from '../../domain/ports/clock.ts';
import type { KeyLookUp, DeclaredHashes, KeyDirectory, NamedKey } from '../../domain/ports/key-store.ts';
import type { ReportFault } from '../../domain/ports/telemetry.ts';
import { StorageError, storageUnavailable } from '../../domain/storage-refusal.ts';
import { sumFaults } from '../../domain/fault-reports.ts';
import { atMost } from '../../shared/at-most.ts';
import { refuse } from '../../shared/errors.ts';
import type { Refusal } from '../../shared/errors.ts';
import { hashKey } from '../../shared/digest.ts';

/** How many keys the cache holds. */
const maxCachedKeys = 10_000;

/** How long a cached key is used before the store is asked again, in milliseconds. */
const cacheMs = 10_000;

/** How many keys are remembered as valid before, beyond that time. */
const maxKnownKeys = 100_000;

/** How many look-ups of keys that were never seen valid run at once: a flood of them must not fill the database's queue. */
const maxUnknownLookUps = 64;

/** The retry-after of a request whose key was not looked up, in milliseconds. */
const retryMs = 1_000;

/** The directory, with what changes its view of the stored keys. */
export interface ManagedKeyDirectory extends KeyDirectory {
  /** Empties the cache, so that a change of the stored keys counts from the next request on. */
  forgetAll(): void;
  /** Confirms that what is cached was still stored at a time, on the monotonic clock. */
  confirm(atMs: number): void;
  /** Replaces the declared keys: those of before are refused from now on, whatever is stored. */
  declare(declared: DeclaredHashes): void;
}

/** What the directory asks and reports to. */
export interface DirectoryPorts {
  readonly onFault: ReportFault;
  /** Called for a key that was not looked up, because too many unknown keys were. */
  readonly onShed: () => void;
  /** Whether the config in force takes imported keys; none does without it. */
  readonly takesImported?: () => boolean;
}

/** Where other processes change the stored keys: how long a read, or a confirmation of it, may be relied on. */
export interface SharedKeys {
  /** In milliseconds. */
  readonly maxUnconfirmedMs: number;
}

/**
 * Finds usable keys in a cache, and in the store by the hash of the text presented, which itself is not kept. Look-ups of
 * keys that this process has not seen valid are bounded apart from all others, so that a flood of guesses locks no paying
 * client out. Wrong keys are not cached, so that guesses can't fill the cache.
 *
 * A key in a form of its own is looked up only if the config declares it, which its hash shows, or if it may be one that was
 * imported, where the config takes those: guesses in other forms cost no look-up at all. Comparing hashes leaks no secret by
 * its timing, because a caller can't choose their bytes.
 *
 * Where other processes change keys, the cache is used only as long as reads of their changes confirm it. While they do
 * not, each request asks the store, and is refused if that does not answer in time.
 */
export function createKeyDirectory(
  store: KeyLookUp,
  clock: Clock,
  { onFault, onShed, takesImported = () => false }: DirectoryPorts,
  { maxUnconfirmedMs }: SharedKeys = { maxUnconfirmedMs: Number.POSITIVE_INFINITY },
): ManagedKeyDirectory {
  const cache = new LRUCache<string, ApiKey>({ ...atMost(maxCachedKeys), ttl: cacheMs });
  const known = new LRUCache<string, true>(atMost(maxKnownKeys));
  /** The look-ups under way, by hash: identical ones are shared. */
  const underWay = new Map<string, Promise<ApiKey | null | Refusal>>();
  const readFailed = sumFaults('keys could not be read', onFault, clock);
  let declared: DeclaredHashes = { hashes: new Set(), stored: Promise.resolve(true) };
  let unknownLookUps = 0;
  const reads = new ConfirmedReads(clock, maxUnconfirmedMs);

  return {
    couldBeKey: (presented) => couldBeKey(presented, hashKey(presented), declared, takesImported),
    async find(presented) {
      const hash = hashKey(presented);
      if (!couldBeKey(presented, hash, declared, takesImported)) return null;
      const cached = reads.isConfirmed ? cache.get(hash) : undefined;
      if (cached !== undefined) return isUsable(cached, clock.now()) ? cached : null;
      return underWay.get(hash) ?? startLookUp(hash, presented);
    },
    findById: (id) =>
      findNamed(() => reads.read(() => store.findKeyById(id)), declared, clock).catch(notRead),
    forgetAll,
    confirm: (atMs) => reads.confirm(atMs),
    declare(next) {
      declared = next;
      forgetAll();
    },
  };

  function forgetAll(): void {
    reads.change();
    cache.clear();
    // A request after a revocation must not join a look-up from before it.
    underWay.clear();
  }

  function notRead(error: unknown): Refusal {
    readFailed(error);
    return storageUnavailable();
  }

  function startLookUp(hash: string, presented: string): Promise<ApiKey | null | Refusal> | Refusal {
    const isUnknown = !known.has(hash) && !declared.hashes.has(hash);
    if (isUnknown && unknownLookUps >= maxUnknownLookUps) {
      onShed();
      return tooManyLookUps();
    }
    if (isUnknown) unknownLookUps++;
    const found = lookUp(hash, presented).finally(() => {
      if (isUnknown) unknownLookUps--;
      if (underWay.get(hash) === found) underWay.delete(hash);
    });
    underWay.set(hash, found);
    return found;
  }

  async function lookUp(hash: string, presented: string): Promise<ApiKey | null | Refusal> {
    try {
      if (declared.hashes.has(hash) && !(await declared.stored)) return storageUnavailable();
      const { result: key, mayBeKept } = await reads.read(() => store.findKeyByHash(hash));
      if (key === null || !isFor(presented, hash, key, declared) || !isUsable(key, clock.now())) {
        known.delete(hash);
        return null;
      }
      known.set(hash, true);
      if (mayBeKept()) cache.set(hash, key);
      return key;
    } catch (error) {
      return notRead(error);
    }
  }
}

/** Whether a text may have the hash of a key, so that it is worth a look-up. */
function couldBeKey(
  presented: string,
  hash: string,
  { hashes }: DeclaredHashes,
  takesImported: () => boolean,
): boolean {
  return hashes.has(hash) || isWellFormed(presented) || (takesImported() && mayBeImported(presented));
}

/**
 * Whether a secret stands for the key that has its hash: those of declared keys are the config's decision alone. An import has
 * only the hash, so that the text of its key, which may have been made by hand, is checked here, and only once it was found.
 */
function isFor(presented: string, hash: string, { isDeclared }: ApiKey, { hashes }: DeclaredHashes): boolean {
  return isDeclared ? hashes.has(hash) : isWellFormed(presented) || !isGuessable(presented);
}

/**
 * Reads a key that is named by its id. A declared one is read once the declarations are stored: a key that the config in
 * force declares no more is revoked by that, and would pass for a valid one before.
 */
async function findNamed(
  read: () => Promise<{ readonly result: ApiKey | null }>,
  { stored }: DeclaredHashes,
  clock: Clock,
): Promise<NamedKey | null | Refusal> {
  let { result: key } = await read();
  if (key?.isDeclared === true) {
    if (!(await stored)) return storageUnavailable();
    key = (await read()).result;
  }
  if (key === null) return null;
  if (isUsable(key, clock.now())) return { key, fault: null };
  return { key, fault: key.revokedAtMs === null ? 'expired' : 'revoked' };
}

function tooManyLookUps(): Refusal {
  return refuse('overloaded', 'Too many unknown API keys are being checked right now. Try again shortly.', {
    retryAfterMs: retryMs,
  });
}

/** When a read of the store began, on the monotonic clock, and how many changes were known then. */
interface BegunRead {
  readonly readMs: number;
  readonly changes: number;
}

/**
 * Says how far answers of the store can be relied on, now and when they are kept. In a process that has the store alone
 * they can be until it changes something itself. Where other processes change the store, an answer can be relied on for a
 * limited time, by which a change may be noticed late; reads that find no change since confirm it anew.
 */
class ConfirmedReads {
  readonly #clock: Clock;
  readonly #maxUnconfirmedMs: number;
  #changes = 0;
  #confirmedMs = Number.NEGATIVE_INFINITY;

  /** `maxUnconfirmedMs` is infinite for a process that has the store alone. */
  constructor(clock: Clock, maxUnconfirmedMs: number) {
    this.#clock = clock;
    this.#maxUnconfirmedMs = maxUnconfirmedMs;
  }

  /** Whether answers that were kept, and not outdated by a change, can be used. */
  get isConfirmed(): boolean {
    return this.#isRecent(this.#confirmedMs);
  }

  /** Says that the store has changed: answers to what was read before are not used any more. */
  change(): void {
    this.#changes++;
  }

  /** Says that all changes which were made before a time, on the monotonic clock, are known. */
  confirm(atMs: number): void {
    this.#confirmedMs = Math.max(this.#confirmedMs, atMs);
  }

  /**
   * Asks the store, and once more if it has changed meanwhile or took so long that it may have: reads do not queue behind
   * writes. Rejects when the second answer takes that long, too. `mayBeKept` says whether no change has followed the answer so
   * far: it is asked as the answer is kept, as one may be told between the answer and that.
   */
  async read<Result>(
    ask: () => Promise<Result>,
  ): Promise<{ readonly result: Result; readonly mayBeKept: () => boolean }> {
    const first = await this.#ask(ask);
    if (first.changes === this.#changes && this.#isReliable(first))
      return { result: first.result, mayBeKept: () => first.changes === this.#changes };
    const second = await this.#ask(ask);
    if (!this.#isReliable(second)) throw new StorageError('the database takes too long to answer', 'slow');
    return { result: second.result, mayBeKept: () => false };
  }

  async #ask<Result>(ask: () => Promise<Result>): Promise<BegunRead & { readonly result: Result }> {
    const begun = { readMs: this.#clock.monotonicMs(), changes: this.#changes };
    return { ...begun, result: await ask() };
  }

  /** A confirmation is of no use to an answer that was outdated by a change. */
  #isReliable({ readMs, changes }: BegunRead): boolean {
    return this.#isRecent(changes === this.#changes ? Math.max(readMs, this.#confirmedMs) : readMs);
  }

  #isRecent(atMs: number): boolean {
    return this.#clock.monotonicMs() - atMs <= this.#maxUnconfirmedMs;
  }
}
