/**
 * The rules of claims, each of which may be broken, and the fault that the search has to find then. What holds without any is
 * in docs/contributors/decisions/claims-of-requests.md.
 */
export const brokenRules = {
  'a second client runs anew': 'ran 2 times with 0 failures',
  'a claim is not on the disk before the call': 'listens, and nothing will come',
  'a settlement does not look at the claim': 'was charged 2 times',
  'what is settled is joined': 'listens, and nothing will come',
  'a stopped owner is passed over': 'runs in two processes that have leases',
  'a lease is ended before it is over': 'runs in two processes that have leases',
  'the first client that leaves stops the run': 'listened to a run that was stopped for want of clients',
  'a join does not end the grace': 'listened to a run that was stopped for want of clients',
  'the end goes out before the charge': 'has the answer of run 1, which was not charged',
  'what was cut is replayed': 'has a cut-off answer as a complete one',
  'an owner does not free what it does not have': 'claim 0 is taken, for ever',
  'a process begins without a lease': 'listens, and nothing will come',
  'a failed run keeps its claim as ended': 'was refused with a charge that was not made',
  'an owner goes on when its lease was ended': 'runs in two processes that have leases',
  'a run without clients goes on': 'goes on without a client or a grace',
  'what has ended is answered to none': 'has neither an answer nor a refusal, for ever',
} as const;

export type BrokenRule = keyof typeof brokenRules;
