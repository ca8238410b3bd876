import type { ReportFault } from '../../../domain/ports/telemetry.ts';
import type { StorageError } from '../../../domain/storage-refusal.ts';
import type { SqlValue } from '../../engine.ts';
import type { Migration } from '../../migration.ts';
import { migrate, migrationLimits } from '../migrate.ts';
import { keepPartitions } from '../partitions.ts';
import type { ConnectionOptions, ServerLimits } from './client-config.ts';
import { KeptConnection } from './connection.ts';
import type { ConnectionWatch } from './connection.ts';
import { whileLost } from './while-lost.ts';

/** How many connections the fixed units share, the reads, and the look-ups. */
const unitLanes = 8;
const readLanes = 2;
const lookUpLanes = 2;

/** How long the server may work on a read, and wait in it for a lock, in milliseconds. */
const readLimits: ServerLimits = { statementMs: 30_000, lockMs: 4_000 };

/**
 * The same of a look-up. When the network has dropped its connection without a word, that is noticed after this time and
 * that of an answer: until then no key can be looked up, no change be found and no lease be judged.
 */
const lookUpLimits: ServerLimits = { statementMs: 3_000, lockMs: 1_500 };

/**
 * How long a fixed unit waits for a lock at the most, in milliseconds: those of other keys wait behind it. Nodes hold the
 * lock of an account or a key for a commit; what holds it for longer is another session, or a standby that is waited for.
 * It is more than the second after which PostgreSQL looks for a deadlock, of which one side is repeated.
 */
const laneLockMs = 1_500;

/** The connections of an engine. */
interface Connections {
  /** Units of statements. */
  readonly statements: KeptConnection;
  /** Fixed units. */
  readonly fixed: Lanes;
  /** Reads that may take long, such as those of operators. */
  readonly reads: Lanes;
  /** What the process does for itself, as the renewal of its lease: it waits behind nothing else. */
  readonly own: KeptConnection;
  /** Short reads, on which requests and nodes depend. */
  readonly lookUps: Lanes;
  /** Resolves when all of them are open and the schema is up to date; otherwise none of them stays open. */
  readonly ready: Promise<void>;
  /** Why some work can't be done; `null` while all can. */
  readonly fault: StorageError | null;
  close(): Promise<void>;
}

/**
 * Opens the connections of an engine, and keeps the partitions of its records. `options` are those of its units, `steps` those
 * of the schema, if not this version's.
 */
export function openConnections(
  options: Omit<ConnectionOptions, 'callsFunctions'>,
  watch: ConnectionWatch | null,
  onFault: ReportFault,
  steps?: readonly Migration[],
): Connections {
  const plain = { ...options, callsFunctions: false };
  const shared = watch === null ? null : watchAll(watch);
  const setUp = new KeptConnection({ ...plain, limits: migrationLimits });
  const statements = new KeptConnection(plain, shared);
  const { statementMs, lockMs } = options.limits;
  const laneLimits = { statementMs, lockMs: Math.min(lockMs, laneLockMs) };
  const fixed = new Lanes(unitLanes, { ...options, limits: laneLimits, callsFunctions: true }, shared);
  const own = new KeptConnection({ ...options, limits: laneLimits, callsFunctions: true }, shared);
  const reads = new Lanes(readLanes, { ...plain, limits: readLimits }, shared);
  const lookUps = new Lanes(lookUpLanes, { ...plain, limits: lookUpLimits }, shared);
  const partitions = keepPartitions((queries) => statements.send(queries), options.clock, onFault);
  const close = async (): Promise<void> => {
    partitions.stop();
    await Promise.all(
      [setUp, statements, fixed, own, reads, lookUps].map((connection) => connection.close()),
    );
  };
  const ready = (async () => {
    await setUp.opened;
    // An error that the database answers is one on a connection that is open.
    const isLost = (): boolean => setUp.fault?.reason === 'unavailable';
    await whileLost(() => migrate(setUp, steps), isLost, options.clock);
    await partitions.start((queries) => setUp.send(queries));
    await setUp.close();
    await Promise.all([statements, fixed, own, reads, lookUps].map(({ opened }) => opened));
  })();
  ready.catch(close);
  return {
    statements,
    fixed,
    own,
    reads,
    lookUps,
    ready,
    get fault() {
      return statements.fault ?? fixed.fault ?? own.fault ?? lookUps.fault ?? reads.fault;
    },
    close,
  };
}

/** Reports the first of several connections that is lost, and that all of them are open again. */
function watchAll(watch: ConnectionWatch): ConnectionWatch {
  let lost = 0;
  return {
    lost(fault) {
      if (lost++ === 0) watch.lost(fault);
    },
    regained() {
      if (--lost === 0) watch.regained();
    },
  };
}

/** Some connections to the same database, side by side. */
export class Lanes {
  /** Resolves when all of them are open. */
  readonly opened: Promise<unknown>;
  readonly #connections: readonly KeptConnection[];

  constructor(count: number, options: ConnectionOptions, watch: ConnectionWatch | null = null) {
    const watchLane: ConnectionWatch = {
      lost: (fault) => {
        watch?.lost(fault);
        if (fault.reason === 'slow') this.#replaceIdle();
      },
      regained: () => watch?.regained(),
    };
    this.#connections = Array.from({ length: count }, () => new KeptConnection(options, watchLane));
    this.opened = Promise.all(this.#connections.map(({ opened }) => opened));
    this.opened.catch(() => {});
  }

  /** Why none of them is open; `null` while one is. */
  get fault(): StorageError | null {
    const faults = this.#connections.map(({ fault }) => fault);
    return faults.includes(null) ? null : (faults[0] ?? null);
  }

  /**
   * The same one for the same value, so that what has to wait for each other waits here rather than there. While that one
   * is lost it is the next one that is open.
   */
  of(value: SqlValue | undefined): KeptConnection {
    const at = hash(String(value));
    if (this.#at(at).fault === null) return this.#at(at);
    const next = this.#connections.findIndex((_, index) => this.#at(at + index).fault === null);
    return this.#at(at + Math.max(0, next));
  }

  /** The open one with the fewest waiting queries: a short read does not wait for a long one while another lane is free. */
  leastBusy(): KeptConnection {
    const open = this.#connections.filter(({ fault }) => fault === null);
    return open.toSorted((a, b) => a.waiting - b.waiting)[0] ?? this.#at(0);
  }

  async close(): Promise<void> {
    await Promise.all(this.#connections.map((connection) => connection.close()));
  }

  /** A network that has forgotten one connection without a word has often forgotten all of them. */
  #replaceIdle(): void {
    for (const connection of this.#connections) connection.replaceIdle();
  }

  #at(number: number): KeptConnection {
    const connection = this.#connections[number % this.#connections.length];
    if (connection === undefined) throw new Error('there are no connections');
    return connection;
  }
}

/** A number of 31 bits that spreads texts evenly (FNV-1a). */
function hash(text: string): number {
  let sum = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) sum = Math.imul(sum ^ text.charCodeAt(at), 0x01000193);
  return sum >>> 1;
}
