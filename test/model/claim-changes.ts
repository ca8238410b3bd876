import { listenersOf } from './claim-state.ts';
import type { Answer, Claim, Kept, Row, State } from './claim-state.ts';

/** A client that is connected nowhere. */
export const away = { is: 'away', process: -1, run: -1 } as const;

/** What is on the disk is all that was written before it. */
export function flush(next: State): void {
  for (const claim of next.claims) claim.onDisk = claim.row;
}

/** Whether a run has its claim. One that was freed never has it again. */
export function isOwn(row: Row | null, { run }: Pick<Kept, 'run'>): row is Row {
  return row !== null && row.stands === 'running' && row.run === run;
}

/** Notes that a run came to nothing. */
export function lose({ lost }: Claim, run: number): void {
  if (!lost.includes(run)) lost.push(run);
}

/** Stops a run. It should have no client. */
export function cut(next: State, at: number, claim: number, answer: Answer): void {
  for (const client of listenersOf(next, at, claim)) client.is = 'interrupted';
  answer.stands = 'cut';
  answer.inGrace = false;
}

/** Clients get the end of an answer. */
export function serve(next: State, at: number, claim: number, run: number): void {
  for (const client of listenersOf(next, at, claim))
    Object.assign(client, { is: 'served', process: -1, run });
}

/** The connections of clients break; they may ask again. */
export function sendAway(next: State, at: number, claim: number): void {
  for (const client of listenersOf(next, at, claim)) Object.assign(client, away);
}

/** Begins the grace of a run that has no client any more. */
export function noteLeft(next: State, at: number, claim: number, answer: Answer): void {
  if (listenersOf(next, at, claim).length === 0) answer.inGrace = true;
}
