import type { Failure, Size } from './claim-state.ts';

/** How a rule that is broken is found: what the fault says, and what has to go wrong for it. */
interface Finding {
  readonly fault: string;
  readonly failures: readonly Failure[];
  /** Of two clients, how many ask for something else. */
  readonly others?: number;
}

/**
 * The rules of claims, each of which may be broken, and the fault that the search has to find then. What holds without any is
 * in docs/contributors/decisions/claims-of-requests.md.
 */
export const brokenRules = {
  'a second client runs anew': { fault: 'ran 2 times, of which 0 were lost', failures: [] },
  'a claim is not on the disk before the call': {
    fault: 'ran 2 times, of which 0 were lost',
    failures: ['crash'],
  },
  'a settlement does not look at the claim': {
    fault: 'was charged for run 1, which was lost',
    failures: ['stop'],
  },
  'what is settled is joined': { fault: 'listens, and nothing will come', failures: [] },
  'a stopped owner is passed over': { fault: 'ran 2 times, of which 0 were lost', failures: ['stop'] },
  'a lease is ended before it is over': {
    fault: 'runs in two processes that have leases',
    failures: ['stop'],
  },
  'the first client that leaves stops the run': {
    fault: 'listened to a run that was stopped for want of clients',
    failures: [],
  },
  'a join does not end the grace': {
    fault: 'listened to a run that was stopped for want of clients',
    failures: [],
  },
  'the end goes out before the charge': {
    fault: 'has the answer of run 1, which was not charged',
    failures: [],
  },
  'what was cut is replayed': { fault: 'has a cut-off answer as a complete one', failures: ['upstream'] },
  'an owner does not free what it does not have': {
    fault: 'claim 0 is taken, for ever',
    failures: ['upstream', 'crash'],
  },
  'a process begins without a lease': { fault: 'claim 0 is taken, for ever', failures: ['stop', 'kill'] },
  'a failed run keeps its claim as ended': {
    fault: 'was refused with a charge that was not made',
    failures: ['upstream'],
  },
  'an owner goes on when its lease was ended': {
    fault: 'runs in two processes that have leases',
    failures: ['stop'],
  },
  'a run without clients goes on': { fault: 'goes on without a client or a grace', failures: [] },
  'an owner frees what it is about to run': { fault: 'ran 2 times, of which 0 were lost', failures: [] },
  'a settlement in doubt charges again': { fault: 'was charged 2 times', failures: ['loss'] },
  'a kept settlement does not look at the claim': {
    fault: 'was charged for run 1, which was lost',
    failures: ['loss', 'kill'],
  },
  'a begin that was made is taken for another one': {
    fault: 'ran 2 times, of which 0 were lost',
    failures: [],
  },
  'what is there is not replayed': { fault: 'was told of a charge whose answer is there', failures: [] },
  'another request is answered with what is there': {
    fault: 'has the answer of another request',
    failures: [],
    others: 1,
  },
  'what has ended is answered to none': {
    fault: 'has neither an answer nor a refusal, for ever',
    failures: [],
  },
} as const satisfies Readonly<Record<string, Finding>>;

export type BrokenRule = keyof typeof brokenRules;

/** The size of the search that has to find a broken rule: two clients of one claim in two processes. */
export function sizeOf({ failures, others = 0 }: Finding): Size {
  const count = (kind: Failure): number => failures.filter((one) => one === kind).length;
  return {
    claims: 1,
    clients: 2,
    others,
    processes: 2,
    failures: failures.length,
    most: {
      kill: count('kill'),
      stop: count('stop'),
      loss: count('loss'),
      upstream: count('upstream'),
      crash: count('crash'),
    },
  };
}
