/** What happened in some histories: with these one sees that they are not trivial. */
export type Counts = Record<(typeof counted)[number], number>;

const counted = [
  'histories',
  'seconds of virtual time',
  'events',
  'calls of the database',
  'requests',
  'slots granted at once',
  'requests that waited in the queue',
  'slots granted after a wait',
  'clients that left the queue',
  'refusals for concurrency',
  'refusals for rate',
  'refusals without a call of the database',
  'refusals because the database was away',
  'requests that were settled',
  'settlements that were kept and made later',
  'settlements that overtook a closing as lost',
  'records that were closed as lost',
  'budgets that were refilled',
  'requests in a later period than their clock says',
  'refusals because a budget was used up',
  'charges for a period that was over',
  'processes that were killed',
  'processes that were stopped in order',
  'processes that were paused',
  'wall clocks that jumped',
  'outages of the database',
  'nodes that were cut off',
  'calls that were lost before they took effect',
  'calls that took effect and whose answer was lost',
  'calls that took effect after their failure was reported',
  'calls that hung',
  'calls that overtook an earlier one',
  'leases that were ended by others',
  'slots and places freed of ended leases',
  'slots restored of running requests',
  'checks that all of an ended process was free in time',
] as const;

export function noCounts(): Counts {
  return Object.fromEntries(counted.map((name) => [name, 0])) as Counts;
}

/** Adds the counts of one history to those of others. */
export function addCounts(sum: Counts, more: Counts): void {
  for (const name of counted) sum[name] += more[name];
}

/** One line for each count. */
export function describeCounts(counts: Counts): string {
  return counted.map((name) => `${String(Math.round(counts[name])).padStart(12)}  ${name}`).join('\n');
}
