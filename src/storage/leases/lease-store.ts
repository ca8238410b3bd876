import type { NextId } from '../../domain/ports/clock.ts';
import type { RecordLeases } from '../../domain/ports/leases.ts';
import type { Engine } from '../engine.ts';
import {
  endFutureRenewals,
  endLease,
  endOverLeases,
  renewLease,
  selectOverLeases,
} from './lease-statements.ts';

/** The id under which a process keeps what it holds. It changes when its lease was ended by others. */
export interface Owner {
  id: string;
}

/** Keeps the lease of one owner and ends those of others, over any engine. */
export function createLeases(engine: Engine, owner: Owner, nextId: NextId): RecordLeases {
  let hasHeld = false;
  return {
    owner: () => owner.id,
    async renewLease() {
      const next = hasHeld ? nextId() : owner.id;
      const [hasNext] = (await engine.call(renewLease, [owner.id, next])) ?? [];
      const hadEnded = hasHeld && hasNext === 1;
      if (hadEnded) owner.id = next;
      hasHeld = true;
      return hadEnded;
    },
    async endOverLeases() {
      // A read delays no unit, and mostly finds nothing; what it finds is judged again where it is ended.
      const [over = []] = await engine.lookUp([selectOverLeases(owner.id)]);
      if (over.length === 0) return [];
      const [, ended = []] = await engine.run([endFutureRenewals, endOverLeases(owner.id)]);
      return ended.map((row) => String(row['id']));
    },
    async endLease() {
      await engine.call(endLease, [owner.id]);
    },
  };
}
