import { parseArgs } from 'node:util';

/** What the command line asks for. */
export interface Options {
  readonly rounds: number;
  /** When no further round is begun: it should end before this many minutes from the start. */
  readonly minutes: number;
  readonly isQuick: boolean;
  /** Parts of names of scenarios and subjects; empty means all. */
  readonly only: readonly string[];
  readonly subjects: readonly string[];
  /** Another checkout that is measured as well, for before and after. */
  readonly against: string | null;
  /** Raw data of earlier runs that are shown instead of a new run. */
  readonly from: readonly string[];
  /** Where the raw data goes; null makes a name by the time. */
  readonly out: string | null;
  readonly publishes: boolean;
  /** Only hold so many streams open at once. */
  readonly streams: number | null;
}

export const help = `npm run bench -- [options]
  --rounds N         rounds, each with new processes (default 5; quick 1); starts and memory are measured in half as many
  --minutes N        no round is begun that would end later than this after the start (default 30)
  --quick            fewer requests and one round, in about six minutes: a direction rather than a result
  --only NAME        only scenarios whose name begins so; may be repeated
  --subjects A,B     only these of textgate, postgres, nodes, workers-1, workers-2, workers-4,
                     nginx, naive, ledger, portkey, direct
  --against FOLDER   measures the checkout in this folder as well, as textgate-before and postgres-before
  --streams N        only holds N streams open at once on one process
  --from FILE        shows raw data of an earlier run instead of a new one; several files are taken together
  --out FILE         where the raw data goes (default: bench-results/TIME.json)
  --publish          writes tables and picture into docs/, and the main figures into the README
`;

const defaultRounds = 5;
const quickRounds = 1;
const defaultMinutes = 30;

/** Reads the command line; null when it asks for help. Throws what is wrong with it. */
export function readOptions(args: readonly string[]): Options | null {
  const { values } = parseArgs({
    args: [...args],
    options: {
      rounds: { type: 'string' },
      minutes: { type: 'string' },
      quick: { type: 'boolean', default: false },
      only: { type: 'string', multiple: true, default: [] },
      subjects: { type: 'string', default: '' },
      against: { type: 'string' },
      streams: { type: 'string' },
      from: { type: 'string', multiple: true, default: [] },
      out: { type: 'string' },
      publish: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  if (values.help) return null;
  return {
    rounds: wholeNumber('rounds', values.rounds) ?? (values.quick ? quickRounds : defaultRounds),
    minutes: wholeNumber('minutes', values.minutes) ?? defaultMinutes,
    isQuick: values.quick,
    only: values.only,
    subjects: values.subjects === '' ? [] : values.subjects.split(','),
    against: values.against ?? null,
    from: values.from,
    out: values.out ?? null,
    publishes: values.publish,
    streams: wholeNumber('streams', values.streams),
  };
}

function wholeNumber(name: string, text: string | undefined): number | null {
  if (text === undefined) return null;
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1) throw new Error(`--${name} takes a whole number above 0`);
  return value;
}
