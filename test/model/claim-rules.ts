/**
 * The rules of claims, each of which may be broken: the search has to find what becomes of that. What holds without any is in
 * docs/contributors/decisions/claims-of-requests.md.
 */
export const brokenRules = {
  'a second client runs anew': 'a client that asks for what runs is given a run of its own',
  'a claim is not on the disk before the call': 'the database may forget who runs what',
  'a settlement does not look at the claim':
    'a run is charged although its claim was freed, or has another run',
  'what is settled is joined': 'a client listens to an answer that has ended',
  'a stopped owner is passed over':
    'what a process runs that stands still is run anew while its lease is held',
  'a lease is ended before it is over': 'what a process runs is freed while it has its lease',
  'the first client that leaves stops the run': 'others may listen',
  'a join does not end the grace': 'the run is stopped although a client has come back',
  'the end goes out before the charge': 'a client has the whole answer, and nothing is charged yet',
  'what was cut is replayed': 'an answer that was stopped is passed as a complete one',
  'an owner does not free what it does not have': 'a claim stays with a process that has no run of it',
  'a process begins without a lease': 'no process ends what it holds when it dies',
  'a failed run keeps its claim as ended': 'a client gets a refusal with a charge that was not made',
  'an owner goes on when its lease was ended': 'it begins under its next lease, and still runs what it had',
  'a run without clients goes on': 'no grace begins when the last client leaves',
} as const;

export type BrokenRule = keyof typeof brokenRules;
