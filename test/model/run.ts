import { countOption, readScript } from '../support/script-options.ts';
import { claimModel } from './claim-model.ts';
import { brokenRules } from './claim-rules.ts';
import type { BrokenRule } from './claim-rules.ts';
import type { Size } from './claim-state.ts';
import { search } from './search.ts';
import type { Found } from './search.ts';

/**
 * Visits every state of claims that so many clients and processes can come to, and looks for one that breaks a rule; then does
 * the same with each rule broken, of which every one has to be found: `npm run model -- --clients 3`.
 */

const { claims, clients, processes, failures, states } = readScript({
  name: 'model',
  options: {
    claims: countOption('claims', 1),
    clients: countOption('clients, each of which asks for one of the claims', 2),
    processes: countOption('processes over one database', 2),
    failures: countOption('how often each kind of failure may happen', 1),
    states: countOption('states at the most', 5_000_000),
  },
});

const size: Size = {
  claims,
  clients,
  processes,
  kills: failures,
  stops: failures,
  losses: failures,
  failures,
  databaseCrashes: failures,
};

function visit(broken: BrokenRule | null): Found {
  const startedMs = performance.now();
  const found = search(claimModel(size, broken), states);
  const seconds = ((performance.now() - startedMs) / 1_000).toFixed(1);
  const what = broken === null ? 'all rules hold' : `broken: ${broken}`;
  print(`${what}: ${found.states} states, ${found.depth} steps deep, ${seconds} s`);
  if (found.fault !== null)
    print(`  ${found.fault.text}\n${found.fault.steps.map((step) => `    ${step}\n`).join('')}`);
  return found;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

let wrong = visit(null).fault === null ? 0 : 1;
for (const rule of Object.keys(brokenRules) as readonly BrokenRule[]) {
  if (visit(rule).fault !== null) continue;
  print('  was not found');
  wrong++;
}
process.exitCode = wrong === 0 ? 0 : 1;
