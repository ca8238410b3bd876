import type { KeyStore } from '../domain/ports/key-store.ts';
import { maxUsageRows } from '../domain/ports/usage.ts';
import type { Usage, UsageRow } from '../domain/ports/usage.ts';
import { dayMs, dayOf } from '../shared/duration.ts';
import { isOurs, repeatTask } from './repeat.ts';
import type { DutyOfOne, TaskPorts } from './repeat.ts';

/** How often the keys are read, in milliseconds. */
const readMs = 60_000;

/** How many pages of usage are read at most: if there are more, no key is shown rather than a wrong one. */
const maxPages = 200;

/** A key that spent much in the current day, in UTC. */
export interface TopKey {
  readonly keyId: string;
  readonly keyName: string;
  readonly chargeNanos: bigint;
}

/** A group whose keys spent much in the current day, in UTC. */
export interface TopGroup {
  readonly group: string;
  readonly chargeNanos: bigint;
}

/** What the watch reads. */
interface TopKeySources {
  readonly usage: Usage;
  readonly store: Pick<KeyStore, 'namesOf'>;
}

interface TopKeyOptions extends TaskPorts {
  /** How many keys and how many groups are shown; 0 for none. */
  readonly count: () => number;
  /** Whether keys may have groups. */
  readonly hasGroups: () => boolean;
  readonly duty: DutyOfOne;
}

/** Reads every minute which keys, and which groups of keys, spent most in the current day. */
export function watchTopKeys(sources: TopKeySources, { count, hasGroups, duty, ...ports }: TopKeyOptions) {
  const today = (): number => dayOf(ports.clock.now());
  let found: {
    readonly dayMs: number;
    readonly keys: readonly TopKey[];
    readonly groups: readonly TopGroup[];
  } | null = null;
  const read = async (): Promise<typeof found> => {
    const day = today();
    if (count() === 0 || !(await isOurs(duty))) return null;
    return {
      dayMs: day,
      keys: await readTopKeys(sources, day, count()),
      groups: hasGroups() ? await readTopGroups(sources, day, count()) : [],
    };
  };
  const failure = 'the keys that spend most could not be read';
  const { stop } = repeatTask(ports, { firstMs: 0, delayMs: readMs, failure }, async () => {
    try {
      found = await read();
    } catch (error) {
      found = null;
      throw error;
    }
  });
  const ofToday = () => (found !== null && found.dayMs === today() ? found : null);
  return {
    /** The keys with the largest charges of the current day, largest first; none before the first read of the day. */
    current: (): readonly TopKey[] => ofToday()?.keys.slice(0, count()) ?? [],
    /** The same of groups. */
    currentGroups: (): readonly TopGroup[] => ofToday()?.groups.slice(0, count()) ?? [],
    stop,
  };
}

/** The keys with the largest charges of a day, with their names. */
async function readTopKeys(
  { usage, store }: TopKeySources,
  fromMs: number,
  count: number,
): Promise<readonly TopKey[]> {
  const top = await readTop(usage, ['key'], fromMs, count);
  const ids = top.map(({ keyId = '' }) => keyId);
  const names = ids.length === 0 ? new Map<string, string>() : await store.namesOf(ids);
  return top.map(({ keyId = '', chargeNanos }) => ({
    keyId,
    keyName: names.get(keyId) ?? '',
    chargeNanos,
  }));
}

/** The groups with the largest charges of a day; keys without one have a row, too. */
async function readTopGroups(
  { usage }: TopKeySources,
  fromMs: number,
  count: number,
): Promise<readonly TopGroup[]> {
  const top = await readTop(usage, ['group'], fromMs, count + 1);
  return top
    .flatMap(({ group, chargeNanos }) => (typeof group === 'string' ? [{ group, chargeNanos }] : []))
    .slice(0, count);
}

/** The rows of usage with the largest charges of a day; those that were charged nothing are none of them. */
async function readTop(
  usage: Usage,
  by: readonly ['key' | 'group'],
  fromMs: number,
  count: number,
): Promise<readonly UsageRow[]> {
  let top: readonly UsageRow[] = [];
  let after: string | null = null;
  for (let page = 0; page === 0 || after !== null; page++) {
    if (page === maxPages) throw new Error(`the usage of today has more than ${maxPages} pages`);
    const read: Awaited<ReturnType<Usage['usage']>> = await usage.usage({
      by,
      fromMs,
      toMs: fromMs + dayMs,
      where: {},
      limit: maxUsageRows,
      after,
    });
    if (read === null) throw new Error('a page of usage has a cursor that is not known');
    top = [...top, ...read.rows.filter(({ chargeNanos }) => chargeNanos > 0n)]
      .toSorted((one, other) => Number(other.chargeNanos - one.chargeNanos))
      .slice(0, count);
    after = read.next;
  }
  return top;
}
