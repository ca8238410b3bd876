import { LRUCache } from 'lru-cache';
import { atMost } from '../../shared/at-most.ts';
import { digest } from '../../shared/digest.ts';
import type { Engine } from '../engine.ts';
import { numberKind } from './record-kinds.ts';
import type { Kind } from './record-kinds.ts';

/** How many kinds are remembered: a few for each model. */
const maxKinds = 10_000;

/** The hexadecimal digits of a number: among ten thousand kinds two have the same one once in five million databases. */
const numberDigits = 12;

/** How many numbers are tried for a kind. */
const maxTries = 10;

/** The numbers of kinds, which are asked of the database once. */
export interface KindNumbers {
  /** The number of a kind as far as it is known. */
  find(kind: Kind): number | undefined;
  ask(kind: Kind): Promise<number>;
}

/**
 * Remembers the numbers of kinds over any engine. A number is made of what the kind says, so that it means the same in a database
 * that was restored or takes the place of another one, which may lack the kind.
 */
export function createKindNumbers(engine: Pick<Engine, 'call'>): KindNumbers {
  const numbers = new LRUCache<string, number>(atMost(maxKinds));
  const asked = new Map<string, Promise<number>>();
  return {
    find: (kind) => numbers.get(JSON.stringify(kind)),
    ask(kind) {
      const name = JSON.stringify(kind);
      // The first requests of a kind often come at once.
      const asking = asked.get(name) ?? nameKind(engine, kind, name).finally(() => asked.delete(name));
      asked.set(name, asking);
      return asking.then((number) => (numbers.set(name, number), number));
    },
  };
}

/** Gives a kind its number in the database, or finds it there. */
async function nameKind(engine: Pick<Engine, 'call'>, kind: Kind, name: string): Promise<number> {
  for (let tries = 0; tries < maxTries; tries++) {
    const hash = digest(tries === 0 ? name : `${name}${tries}`);
    const row = await engine.call(numberKind, [Number.parseInt(hash.slice(0, numberDigits), 16), ...kind]);
    if (row !== null) return Number(row[0]);
  }
  throw new Error(`the first ${maxTries} numbers of a kind of records are those of other kinds`);
}
