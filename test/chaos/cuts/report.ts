import { clientNames } from './clients.ts';
import type { Found } from './disturbances.ts';
import { claimSteps } from './observations.ts';

/** What has become of the questions of a client. */
export interface ClientResult {
  readonly name: string;
  readonly questions: number;
  readonly cuts: number;
  readonly tries: number;
  readonly calls: number;
  /** How many prices of a question were charged. */
  readonly charges: number;
}

const columns = ['questions', 'cuts', 'tries', 'calls a question', 'charges a question'] as const;

/** A table of what each client has paid. */
export function tableOfClients(results: readonly ClientResult[]): readonly string[] {
  const nameWidth = Math.max(...clientNames.map((name) => name.length));
  const row = (name: string, cells: readonly string[]): string =>
    [name.padEnd(nameWidth), ...cells.map((cell, at) => cell.padStart(columns[at]?.length ?? 0))].join('  ');
  const rows = results.map(({ name, questions, cuts, tries, calls, charges }) =>
    row(name, [
      ...[questions, cuts, tries].map(String),
      ...[calls, charges].map((count) => (count / questions).toFixed(3)),
    ]),
  );
  return [row('', columns), ...rows];
}

/** A table of the disturbances: how often each kind was played, and how many questions it found in each step. */
export function tableOfDisturbances(found: Found): readonly string[] {
  const width = Math.max(...[...found.keys()].map((kind) => kind.length));
  const row = (kind: string, cells: readonly (number | string)[]): string =>
    [kind.padEnd(width), ...cells.map((cell) => String(cell).padStart(8))].join('  ');
  const rows = [...found].map(([kind, { times, steps }]) =>
    row(kind, [times, ...claimSteps.map((step) => steps.get(step) ?? 0)]),
  );
  return [row('found questions', ['times', ...claimSteps]), ...rows];
}
