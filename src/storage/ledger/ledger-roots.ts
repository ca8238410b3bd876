import type { LedgerRoots } from '../../domain/ports/ledger-chain.ts';
import type { Pause } from '../../domain/pause.ts';
import type { Engine, Row, Statement } from '../engine.ts';
import { readRows } from '../read-rows.ts';
import {
  accountsPerRead,
  readRoot,
  countHeadChange,
  selectGrown,
  selectHeadChanges,
  selectHeads,
  selectRoots,
  storeHead,
  storeRoot,
} from './root-statements.ts';

/** The part of the roots that only reads. */
export type RootReads = Omit<LedgerRoots, 'headChanges' | 'storeHeads' | 'storeRoot'>;

/** Reads the roots over all accounts. */
export function createRootReads(engine: Pick<Engine, 'read'>): RootReads {
  const listRoots: LedgerRoots['listRoots'] = async (before, limit) =>
    (await readRows(engine, selectRoots(before ?? Number.MAX_SAFE_INTEGER, limit))).map(readRoot);
  return {
    listRoots,
    lastRoot: async () => (await listRoots(null, 1))[0] ?? null,
    async *grown(pause) {
      for await (const rows of readPages(engine, selectGrown, pause))
        yield rows.map((row) => ({ keyId: String(row['key_id']), number: Number(row['postings']) }));
    },
    async *headsOf(root, pause) {
      for await (const rows of readPages(engine, (last) => selectHeads(root, last), pause))
        yield rows.map((row) => ({
          keyId: String(row['key_id']),
          number: Number(row['number']),
          hash: String(row['hash']),
        }));
    },
  };
}

/** Keeps the roots over all accounts. */
export function createLedgerRoots(engine: Pick<Engine, 'read' | 'run'>): LedgerRoots {
  return {
    ...createRootReads(engine),
    async storeHeads(root, heads) {
      if (heads.length === 0) return;
      await engine.run([countHeadChange, ...heads.flatMap((head) => storeHead(root, head))]);
    },
    async headChanges() {
      const [row] = await readRows(engine, selectHeadChanges);
      return Number(row?.['changes'] ?? 0);
    },
    async storeRoot(root, headChanges) {
      const rows = (await engine.run(storeRoot(root, headChanges))).at(-1) ?? [];
      return rows.length > 0;
    },
  };
}

/** Reads rows by key a page at a time. */
async function* readPages(
  engine: Pick<Engine, 'read'>,
  select: (afterKeyId: string) => Statement,
  pause: Pause,
): AsyncGenerator<readonly Row[]> {
  for (let last = ''; ; await pause()) {
    const rows = await readRows(engine, select(last));
    if (rows.length > 0) yield rows;
    if (rows.length < accountsPerRead) return;
    last = String(rows.at(-1)?.['key_id'] ?? '');
  }
}
