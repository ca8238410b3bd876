import { listenersOf, works } from './claim-state.ts';
import type { Claim, State } from './claim-state.ts';

/** What must never be true. */
export function faultOf(state: State): string | null {
  for (const [at, claim] of state.claims.entries()) {
    const fault = faultOfClaim(state, at, claim);
    if (fault !== null) return `claim ${at}: ${fault}`;
  }
  for (const [at, { is, claim, process, run }] of state.clients.entries()) {
    if (is === 'interrupted') return `client ${at} listened to a run that was stopped for want of clients`;
    const answer = is === 'listening' ? (state.processes[process]?.answers[claim] ?? null) : null;
    if (is === 'listening' && (answer === null || answer.run !== run || answer.stands === 'settled'))
      return `client ${at} listens, and nothing will come`;
  }
  return null;
}

function faultOfClaim(state: State, at: number, claim: Claim): string | null {
  const { charges, charged, wasComplete, runs, lost } = claim;
  if (charges > 1) return `was charged ${charges} times`;
  if (charges > 0 && lost.includes(charged)) return `was charged for run ${charged}, which was lost`;
  if (runs > 1 + lost.length) return `ran ${runs} times, of which ${lost.length} were lost`;
  const running = state.processes.filter(
    (process) => works(process) && process.leaseIs === 'held' && process.answers[at]?.stands === 'running',
  );
  if (running.length > 1) return 'runs in two processes that have leases';
  for (const [index, client] of state.clients.entries()) {
    if (client.claim !== at) continue;
    if (client.is === 'served' && (charges === 0 || charged !== client.run))
      return `client ${index} has the answer of run ${client.run}, which was not charged`;
    if ((client.is === 'served' || client.is === 'told') && claim.row?.body !== client.body)
      return `client ${index} has the answer of another request`;
    if (client.is === 'served' && !wasComplete)
      return `client ${index} has a cut-off answer as a complete one`;
    if (client.is === 'refused' && client.run === client.body)
      return `client ${index} was refused for what it asks itself`;
    if (client.is === 'told' && client.run > 0)
      return `client ${index} was told of a charge whose answer is there`;
    if (client.is === 'told' && charges === 0)
      return `client ${index} was refused with a charge that was not made`;
  }
  for (const [index, process] of state.processes.entries()) {
    const answer = process.answers[at];
    const isHeard = answer?.inGrace === true || listenersOf(state, index, at).length > 0;
    if (works(process) && answer?.stands === 'running' && !isHeard)
      return `run ${answer.run} goes on without a client or a grace`;
  }
  return null;
}

/** While a process is there, no claim stays with who does not run it, and every client comes to an answer or a refusal. */
export function waitsFor({ claims, clients, processes }: State): string | null {
  if (processes.every(({ life }) => life === 'dead')) return null;
  const claim = claims.findIndex(({ row }) => row?.stands === 'running');
  if (claim >= 0) return `claim ${claim} is taken`;
  const client = clients.findIndex(({ is }) => is === 'listening' || is === 'away');
  return client >= 0 ? `client ${client} has neither an answer nor a refusal` : null;
}
