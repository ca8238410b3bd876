import { countOption, readScript } from '../support/script-options.ts';
import { claimModel } from './claim-model.ts';
import { brokenRules, sizeOf } from './claim-rules.ts';
import type { BrokenRule } from './claim-rules.ts';
import type { Size } from './claim-state.ts';
import { search } from './search.ts';
import type { Found } from './search.ts';

/**
 * Visits every state of claims that so many clients and processes can come to, and looks for one that breaks a rule; then does
 * the same for two clients with each rule broken, of which every one has to be found: `npm run model -- --clients 3`.
 */

const { claims, clients, others, processes, failures, states } = readScript({
  name: 'model',
  options: {
    claims: countOption('claims', 1),
    clients: countOption('clients, each of which asks for one of the claims', 2),
    others: countOption('of them, those that ask for something else under the same key', 0),
    processes: countOption('processes over one database', 2),
    failures: countOption('failures in all', 2),
    states: countOption('states at the most', 5_000_000),
  },
});

const size: Size = {
  claims,
  clients,
  others,
  processes,
  failures,
  most: { kill: failures, stop: failures, loss: failures, upstream: failures, crash: failures },
};

function visit(what: string, searched: Size, broken: BrokenRule | null): Found {
  const startedMs = performance.now();
  const found = search(claimModel(searched, broken), states);
  const seconds = ((performance.now() - startedMs) / 1_000).toFixed(1);
  print(`${what}: ${found.states} states, ${found.depth} steps deep, ${seconds} s`);
  if (found.fault !== null)
    print(`  ${found.fault.text}\n${found.fault.steps.map((step) => `    ${step}\n`).join('')}`);
  return found;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

let wrong = visit('all rules hold', size, null).fault === null ? 0 : 1;
for (const [rule, finding] of Object.entries(brokenRules)) {
  const { fault } = visit(`broken: ${rule}`, sizeOf(finding), rule as BrokenRule);
  if (fault?.text.includes(finding.fault) === true) continue;
  print(`  was not found as "${finding.fault}"`);
  wrong++;
}
process.exitCode = wrong === 0 ? 0 : 1;
