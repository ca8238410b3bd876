import { readRecord } from '../../../src/storage/records/read-record.ts';
import { seededNumbers } from '../../support/random-numbers.ts';
import { openPipeline } from '../../support/pipeline-harness.ts';
import { checkRequest, checkScene } from './checks.ts';
import type { StoredRow } from './checks.ts';
import { addKeys, drawWith, playScene, price } from './scene.ts';
import type { Scene } from './scene.ts';

/** What the gateway reports of upstreams that do what they do here. */
const expectedReports: ReadonlySet<string> = new Set(['implausible usage from an upstream: counted instead']);

/** What was played, and what was wrong. */
export interface Played {
  readonly faults: readonly string[];
  readonly figures: Readonly<Record<string, number>>;
}

/** Plays so many random requests in scenes of their own policies, limits and upstreams, and checks each of them. */
export async function playPolicies(seed: number, requests: number, perScene = 200): Promise<Played> {
  const pipeline = await openPipeline(price, 100);
  const keyIds = await addKeys(pipeline);
  const random = seededNumbers(seed);
  const faults: string[] = [];
  const figures: Record<string, number> = {};
  const add = (name: string, amount: number): void => void (figures[name] = (figures[name] ?? 0) + amount);
  const chargedNanos = new Map<string, number>();
  for (let first = 0, number = 0; first < requests; first += perScene, number++) {
    const count = Math.min(perScene, requests - first);
    const scene = await playScene(pipeline, keyIds, drawWith(random), { first, requests: count });
    const rows = await readRows(pipeline, scene);
    const found = checkScene(scene);
    for (const asked of scene.asked) {
      const row = rows.get(asked.id) ?? null;
      found.push(...checkRequest(asked, scene, row));
      chargedNanos.set(asked.keyId, (chargedNanos.get(asked.keyId) ?? 0) + (row?.charge ?? 0));
    }
    faults.push(...found.map((fault) => `scene ${number}: ${fault}`));
    countScene(scene, rows, add);
  }
  const accounts = await pipeline.store.accounts(keyIds);
  for (const [keyId, { heldNanos, spentNanos }] of accounts) {
    if (heldNanos !== 0) faults.push(`${keyId} has ${heldNanos} held at the end`);
    if (spentNanos !== (chargedNanos.get(keyId) ?? 0))
      faults.push(`${keyId} spent ${spentNanos} and was charged ${chargedNanos.get(keyId) ?? 0}`);
  }
  for (const fault of pipeline.faults) if (!expectedReports.has(fault)) faults.push(`reported: ${fault}`);
  await pipeline.close();
  return { faults, figures };
}

async function readRows(
  pipeline: Awaited<ReturnType<typeof openPipeline>>,
  { asked }: Scene,
): Promise<ReadonlyMap<string, StoredRow>> {
  const marks = asked.map(() => '?').join();
  const [rows = []] = await pipeline.engine.run([
    {
      sql: `SELECT * FROM records WHERE request_id IN (${marks})`,
      values: asked.map(({ id }) => id),
    },
  ]);
  return new Map(
    rows.map((row): [string, StoredRow] => {
      const { requestId, outcome, upstream, chargeNanos: charge, attempts } = readRecord(row);
      return [requestId, { outcome, upstream, charge, upstreams: attempts.map((each) => each.upstream) }];
    }),
  );
}

function countScene(
  { asked, upstreams, limiters }: Scene,
  rows: ReadonlyMap<string, StoredRow>,
  add: (name: string, amount: number) => void,
): void {
  add('scenes', 1);
  add('requests', asked.length);
  add('answered whole', [...rows.values()].filter(({ outcome }) => outcome === 'completed').length);
  add('left', asked.filter(({ client }) => client.got.hasLeft).length);
  add('calls', upstreams.calls.length);
  add('shadows', upstreams.calls.filter(({ isShadow }) => isShadow).length);
  for (const result of ['won', 'lost', 'failed', 'refused'] as const)
    add(`second requests ${result}`, asked.filter(({ summaries }) => summaries[0]?.hedge === result).length);
  add('permits', limiters.permits.length);
  add('waits', limiters.waits);
  add('refused for want of a permit', limiters.refusals);
}
