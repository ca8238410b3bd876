import { StorageError } from '../domain/storage-refusal.ts';
import type { Engine } from './engine.ts';

/** An engine whose code is being loaded. */
export interface DeferredEngine<Loaded extends Engine> extends Engine {
  /** `null` until its code is loaded. */
  readonly loaded: Loaded | null;
  /** Does something with it once it is loaded. */
  use<Done>(work: (loaded: Loaded) => Promise<Done>): Promise<Done>;
}

/**
 * An engine whose code is loaded only now, because most processes don't use it. What is handed in meanwhile is handed on
 * in its order. `load` makes the engine; what it rejects with is what the engine can't be opened for.
 */
export function deferEngine<Loaded extends Engine>(load: () => Promise<Loaded>): DeferredEngine<Loaded> {
  let loaded: Loaded | null = null;
  let closed: StorageError | null = null;
  const loading = load().then((engine) => (loaded = engine));
  const ready = loading.then((engine) => engine.ready);
  ready.catch(() => {});
  const use = async <Done>(work: (engine: Loaded) => Promise<Done>): Promise<Done> => {
    if (closed !== null) throw closed;
    return work(loaded ?? (await loading));
  };
  return {
    get loaded() {
      return loaded;
    },
    ready,
    lost: loading.then(
      ({ lost }) => lost,
      () => new Promise<Error>(() => {}),
    ),
    get broken() {
      return loaded?.broken ?? null;
    },
    get impaired() {
      return loaded?.impaired ?? null;
    },
    get logBytes() {
      return loaded?.logBytes ?? null;
    },
    use,
    run: (unit) => use((used) => used.run(unit)),
    call: (unit, values) => use((used) => used.call(unit, values)),
    read: (statements) => use((used) => used.read(statements)),
    lookUp: (statements) => use((used) => used.lookUp(statements)),
    copy: () => use((used) => used.copy()),
    async close() {
      closed = new StorageError('the database is closed', 'closed');
      await (await loading.catch(() => null))?.close();
    },
  };
}
