import { parseExactUsd } from '../../shared/money.ts';
import type { PathStep } from './root.ts';
import { firstLine } from './write-statement.ts';

/** A point of a chain as a statement says it; the balance in nano-USD. */
interface StatedPoint {
  readonly number: number;
  readonly hash: string;
  readonly balanceNanos: bigint;
}

/** A row as a statement says it. */
export interface StatedRow {
  readonly number: number;
  /** The first digits of the hash of the chain with it. */
  readonly check: string;
  /** What is hashed of it. */
  readonly text: string;
  readonly deltaNanos: bigint;
  readonly balanceNanos: bigint;
}

/** The root in which a statement says that its account is. */
interface StatedRoot {
  readonly number: number;
  /** The text of its line, which is hashed. */
  readonly text: string;
  readonly previous: string;
  readonly tree: string;
  readonly head: { readonly number: number; readonly hash: string };
  readonly path: readonly PathStep[];
}

/** A statement whose lines are read, of which nothing is checked yet. */
export interface StatedStatement {
  readonly keyId: string;
  readonly name: string;
  /** As it is written; `-` for no bound. */
  readonly from: string;
  readonly to: string;
  readonly made: string;
  readonly folded: number;
  readonly opening: StatedPoint;
  readonly rows: readonly StatedRow[];
  readonly closing: StatedPoint;
  readonly hasMore: boolean;
  readonly root: StatedRoot | null;
  readonly signedBy: string;
  readonly signature: string;
  /** All that is signed. */
  readonly signed: string;
}

/** Why a file is not read as a statement. */
export class StatementFormatError extends Error {
  override readonly name = 'StatementFormatError';
}

const timePattern = String.raw`\d{4,6}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`;
const hashPattern = '[0-9a-f]{64}';
const amountPattern = String.raw`-?\d+\.\d{9}`;
const quotedPattern = String.raw`"(?:[^"\\]|\\.)*"`;
const pointPattern = `(\\d{1,15}) (${hashPattern}) (${amountPattern})`;

const lines = {
  key: new RegExp(`^key (${quotedPattern})$`),
  name: new RegExp(`^name (${quotedPattern})$`),
  from: new RegExp(`^from (-|${timePattern})$`),
  to: new RegExp(`^to (-|${timePattern})$`),
  made: new RegExp(`^made (${timePattern})$`),
  folded: /^folded (\d{1,15})$/,
  opening: new RegExp(`^opening ${pointPattern}$`),
  row: new RegExp(
    `^row ([0-9a-f]{16}) ((\\d{1,15}) ${timePattern} (?:credit|charge) (${amountPattern}) (${amountPattern}) (?:-|${quotedPattern}))$`,
  ),
  closing: new RegExp(`^closing ${pointPattern}$`),
  more: /^more (yes|no)$/,
  root: new RegExp(`^root (?:none|((\\d{1,15}) ${timePattern} (${hashPattern}) (${hashPattern})))$`),
  head: new RegExp(`^head (\\d{1,15}) (${hashPattern})$`),
  path: new RegExp(`^path (left|right) (${hashPattern})$`),
  'signed-by': /^signed-by ([0-9a-f]{16})$/,
  signature: /^signature ([A-Za-z0-9+/]{86}==)$/,
};

type LineName = keyof typeof lines;

/** Reads the lines of a text one after the other. */
class LineReader {
  readonly #lines: readonly string[];
  /** Behind the first line. */
  #at = 1;

  constructor(text: string) {
    this.#lines = text.split('\n');
  }

  /** The parts of the next line, which must be one of this name. */
  take(name: LineName): readonly (string | undefined)[] {
    const line = this.#lines[this.#at] ?? '';
    const found = lines[name].exec(line);
    const isLast = this.#at >= this.#lines.length - 1;
    if (found === null && isLast)
      throw new StatementFormatError(
        `the file is cut off: it ends in line ${this.#at + 1}, where the line "${name} …" is expected`,
      );
    if (found === null)
      throw new StatementFormatError(
        `line ${this.#at + 1} is not as a statement has it: the line "${name} …" is expected there`,
      );
    if (isLast) throw new StatementFormatError('the file is cut off: its last line has no end');
    this.#at++;
    return found.slice(1);
  }

  isNext(name: LineName): boolean {
    return (this.#lines[this.#at] ?? '').startsWith(`${name} `);
  }

  /** Throws unless nothing is left. */
  end(): void {
    if (this.#at !== this.#lines.length - 1 || this.#lines[this.#at] !== '')
      throw new StatementFormatError(
        `line ${this.#at + 1} stands behind the signature, where nothing may be`,
      );
  }
}

/** Reads the text of a file. Throws `StatementFormatError` for one that is no whole statement. */
export function readStatement(text: string): StatedStatement {
  if (!/^textgate statement 1\r?\n/.test(text))
    throw new StatementFormatError(
      text.startsWith('textgate statement ')
        ? 'the statement is of another version of the format than this one reads'
        : `the file is no statement: it does not begin with "${firstLine}"`,
    );
  if (text.includes('\r'))
    throw new StatementFormatError('the file has line ends of Windows: take it as it was sent');
  const reader = new LineReader(text);
  const one = (name: LineName): string => reader.take(name)[0] ?? '';
  const head = {
    keyId: unquote(one('key')),
    name: unquote(one('name')),
    from: one('from'),
    to: one('to'),
    made: one('made'),
    folded: Number(one('folded')),
    opening: readPoint(reader.take('opening')),
  };
  const rows: StatedRow[] = [];
  while (reader.isNext('row')) rows.push(readRow(reader.take('row')));
  const closing = readPoint(reader.take('closing'));
  const hasMore = one('more') === 'yes';
  const root = readRoot(reader);
  const signedBy = one('signed-by');
  const signature = one('signature');
  reader.end();
  const signed = text.slice(0, text.lastIndexOf('signature '));
  return { ...head, rows, closing, hasMore, root, signedBy, signature, signed };
}

function readRoot(reader: LineReader): StatedRoot | null {
  const [text, number, previous = '', tree = ''] = reader.take('root');
  if (text === undefined) return null;
  const [headNumber, headHash = ''] = reader.take('head');
  const path: PathStep[] = [];
  while (reader.isNext('path')) {
    const [side, hash = ''] = reader.take('path');
    path.push({ side: side === 'left' ? 'left' : 'right', hash });
  }
  return {
    number: Number(number),
    text,
    previous,
    tree,
    head: { number: Number(headNumber), hash: headHash },
    path,
  };
}

function readRow([check = '', text = '', number, delta = '', balance = '']: readonly (
  | string
  | undefined
)[]): StatedRow {
  return { check, text, number: Number(number), deltaNanos: nanosOf(delta), balanceNanos: nanosOf(balance) };
}

function readPoint([number, hash = '', balance = '']: readonly (string | undefined)[]): StatedPoint {
  return { number: Number(number), hash, balanceNanos: nanosOf(balance) };
}

function nanosOf(text: string): bigint {
  return parseExactUsd(text) ?? 0n;
}

function unquote(text: string): string {
  try {
    return String(JSON.parse(text));
  } catch {
    throw new StatementFormatError('a name in quotes is not a string of JSON');
  }
}
