import { parseArgs } from 'node:util';

/** An option of a script: a whole number from `least` on, a number above 0, one of some words, a text, or a switch. */
interface Option<Value> {
  readonly help: string;
  /** What it is without being given. */
  readonly initial: Value;
  readonly kind: 'number' | 'factor' | 'text' | 'switch' | readonly string[];
  readonly least: number;
}

type AnyValue = string | number | boolean | null;

type Options = Readonly<Record<string, Option<AnyValue>>>;

/** What was given, or the initial value, of each option. */
type Values<Of extends Options> = {
  readonly [Name in keyof Of]: Of[Name] extends Option<infer Value> ? Value : never;
};

/** How many of something, from 1 on; `null` where the script decides. */
export function countOption(help: string, initial: number): Option<number>;
export function countOption(help: string, initial: null): Option<number | null>;
export function countOption(help: string, initial: number | null): Option<number | null> {
  return { help, initial, kind: 'number', least: 1 };
}

/** The seed of the random choices: the same one repeats them. `null` is another one in each run. */
export function seedOption(initial: number): Option<number>;
export function seedOption(initial: null): Option<number | null>;
export function seedOption(initial: number | null): Option<number | null> {
  return { help: 'repeats the random choices of a run', initial, kind: 'number', least: 0 };
}

/** By how much something is multiplied. */
export function factor(help: string, initial: number): Option<number> {
  return { help, initial, kind: 'factor', least: 0 };
}

/** A switch, which is off unless it is given. */
export function onOff(help: string): Option<boolean> {
  return { help, initial: false, kind: 'switch', least: 0 };
}

/** A text; `null` without being given. */
export function textOption(help: string): Option<string | null> {
  return { help, initial: null, kind: 'text', least: 0 };
}

/** One of some words, of which the first is what it is without being given. */
export function oneOf<Word extends string>(help: string, words: readonly [Word, ...Word[]]): Option<Word> {
  return { help, initial: words[0], kind: words, least: 0 };
}

/** A script with its options, and the names that it takes besides, if it does. */
export interface Script<Of extends Options> {
  /** Its name in `package.json`. */
  readonly name: string;
  readonly options: Of;
  /** Each name that may be given, to run these parts alone. */
  readonly parts?: readonly string[];
}

/** Reads a command line; null when it asks for help. Throws what is wrong with it, in words. */
export function parseScript<Of extends Options>(
  { options, parts = [] }: Script<Of>,
  args: readonly string[],
): (Values<Of> & { readonly parts: readonly string[] }) | null {
  const types = Object.entries(options).map(([name, { kind }]) => {
    const type: 'boolean' | 'string' = kind === 'switch' ? 'boolean' : 'string';
    return [name, { type }] as const;
  });
  const {
    values,
    positionals,
  }: { values: Readonly<Record<string, string | boolean | undefined>>; positionals: readonly string[] } =
    parseArgs({
      args: [...args],
      allowPositionals: parts.length > 0,
      options: { ...Object.fromEntries(types), help: { type: 'boolean' } },
    });
  if (values['help'] === true) return null;
  const unknown = positionals.find((part) => !parts.includes(part));
  if (unknown !== undefined) throw new Error(`'${unknown}' is none of ${parts.join(', ')}`);
  const read = Object.entries(options).map(([name, option]) => [name, valueOf(name, option, values[name])]);
  return { ...(Object.fromEntries(read) as Values<Of>), parts: positionals };
}

function valueOf(
  name: string,
  { kind, initial, least }: Option<AnyValue>,
  given: string | boolean | undefined,
): AnyValue {
  if (typeof given !== 'string') return given ?? initial;
  if (typeof kind !== 'string') {
    if (kind.includes(given)) return given;
    throw new Error(`--${name} is one of ${kind.join(', ')}`);
  }
  if (kind === 'text') return given;
  const value = given === '' ? Number.NaN : Number(given);
  if (kind === 'factor') {
    if (value > 0 && Number.isFinite(value)) return value;
    throw new Error(`--${name} takes a number above 0`);
  }
  if (Number.isSafeInteger(value) && value >= least) return value;
  throw new Error(`--${name} takes a whole number from ${least} on`);
}

/** What `--help` shows. */
export function describeScript({ name, options, parts = [] }: Script<Options>): string {
  const rows = Object.entries(options).map(([option, { kind, help, initial }]) => {
    const value =
      kind === 'switch'
        ? ''
        : kind === 'text'
          ? ' TEXT'
          : typeof kind === 'string'
            ? ' N'
            : ` ${kind.join('|')}`;
    const usual = kind === 'switch' || initial === null ? '' : ` (default ${initial})`;
    return [`--${option}${value}`, `${help}${usual}`] as const;
  });
  const width = Math.max(0, ...rows.map(([left]) => left.length));
  return [
    `npm run ${name}${rows.length === 0 ? '' : ' -- [options]'}${parts.length === 0 ? '' : ' [part …]'}`,
    ...rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`),
    ...(parts.length === 0 ? [] : [`  parts: ${parts.join(', ')}; all without any`]),
    '',
  ].join('\n');
}

/** The options of the script that runs. Ends the process for `--help`, and with code 2 and a word for wrong ones. */
export function readScript<Of extends Options>(
  script: Script<Of>,
): Values<Of> & { readonly parts: readonly string[] } {
  try {
    const found = parseScript(script, process.argv.slice(2));
    if (found !== null) return found;
    process.stdout.write(describeScript(script));
    process.exit(0);
  } catch (error) {
    process.stderr.write(
      `${error instanceof Error ? error.message : String(error)}\n\n${describeScript(script)}`,
    );
    process.exit(2);
  }
}
