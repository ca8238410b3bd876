import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { basename, extname, join } from 'node:path';
import { text as readText } from 'node:stream/consumers';
import { checkStatement, compareStatements, rowsBetween } from '../domain/statements/check-statement.ts';
import type { FoundRoot, NamedStatement } from '../domain/statements/check-statement.ts';
import { StatementFormatError, readStatement } from '../domain/statements/read-statement.ts';
import type { StatedStatement } from '../domain/statements/read-statement.ts';
import { readPublicKey } from '../shared/signing-key.ts';
import type { PublicKey } from '../shared/signing-key.ts';
import { escapeControlCharacters } from '../shared/control-characters.ts';
import { count } from '../shared/count.ts';
import { formatUsd } from '../shared/money.ts';
import { openAdmin } from './admin-client.ts';
import { describeError } from './describe-error.ts';
import { findKeyId, findKeysOfGroup, keyPath } from './keys/find-key.ts';
import { withOptionNames } from './keys/key-options.ts';
import type { Json } from './output.ts';
import { isConnectionFault, isOk, readStart, sendRequest } from './send-request.ts';

/** The options of `statement get`, as commander names them. */
export interface GetOptions {
  readonly from?: string;
  readonly to?: string;
  readonly output?: string | undefined;
  readonly group?: string;
}

/** The options of `statement verify`, as commander names them. */
export interface CheckOptions extends Json {
  readonly keys?: string;
  readonly key?: string;
}

/** The exit code where nothing is wrong, but the signature was not checked. */
const uncheckedCode = 2;

/** The largest file of a statement and of keys, in bytes: a statement has at most some 2 MB. */
const maxFileBytes = 16_777_216;

/** How long the keys of a service may take, in milliseconds. */
const keysMs = 10_000;

/** Fetches the statement of a key, or those of a group: prints the one, or writes files. */
export async function getStatements(key: string | undefined, options: GetOptions): Promise<string> {
  const { group, output, ...period } = options;
  if ((key === undefined) === (group === undefined)) throw new Error('name a key, or a group with --group');
  if (group === undefined) return getStatement(await findKeyId(key ?? ''), { output, ...period });
  if (output === undefined) throw new Error('name the folder for the statements of the group with --output');
  const ids = await findKeysOfGroup(group);
  mkdirSync(output, { recursive: true, mode: 0o700 });
  const written: string[] = [];
  for (const id of ids)
    written.push(await getStatement(id, { output: join(output, `${id}.txt`), ...period }));
  return written.join('\n');
}

/** Fetches the statement of a key, all parts of it; prints it, or writes a file for each part. */
async function getStatement(id: string, { output, ...period }: GetOptions): Promise<string> {
  const path = `${keyPath(id)}/statement`;
  const written: string[] = [];
  for (let after: number | null = null; ;) {
    const query = new URLSearchParams({ ...period, ...(after === null ? {} : { after: String(after) }) });
    const text = await withOptionNames(async () => readText(await openAdmin(`${path}?${query.toString()}`)));
    const { closing, hasMore, rows } = readStatement(text);
    if (output === undefined && hasMore)
      throw new Error(
        'the statement has more rows than one file may have: write all of it with --output FILE',
      );
    // Without its last line end, which is printed behind it.
    if (output === undefined) return text.slice(0, -1);
    written.push(`${writeNew(output, written.length + 1, text)}: ${count(rows.length, 'row')}`);
    if (!hasMore) break;
    after = closing.number;
  }
  return written.join('\n');
}

/** Writes a part of a statement to a file that must not be there yet; the first one has the name as it is given. */
function writeNew(output: string, part: number, text: string): string {
  const end = extname(output);
  const file = part === 1 ? output : `${output.slice(0, output.length - end.length)}.${part}${end}`;
  if (existsSync(file)) throw new Error(`${file} exists: choose another file`);
  writeFileSync(file, text, { flag: 'wx', mode: 0o600 });
  return file;
}

/** A file with what was found in it. */
interface CheckedFile {
  readonly file: string;
  readonly faults: readonly string[];
  readonly statement: StatedStatement | null;
  readonly root: FoundRoot | null;
}

/** Checks files as statements, one by one and against each other. Throws with all that is wrong. */
export async function checkFiles(files: readonly string[], options: CheckOptions): Promise<string> {
  const keys = options.keys === undefined ? null : await readKeys(options.keys);
  const checked = files.map((file) => checkFile(file, keys, options.key));
  const named = checked.flatMap(({ file, statement, faults }): NamedStatement[] =>
    statement === null || faults.length > 0 ? [] : [{ name: basename(file), statement }],
  );
  const contradictions = compareStatements(named);
  const missing = rowsBetween(named);
  const faults = [
    ...checked.flatMap((each) => each.faults.map((fault) => `${each.file}: ${fault}`)),
    ...contradictions,
  ];
  if (options.json) {
    process.exitCode = faults.length > 0 ? 1 : keys === null ? uncheckedCode : 0;
    return JSON.stringify({ valid: faults.length === 0, signature_checked: keys !== null, faults, missing });
  }
  if (faults.length > 0) throw new Error(['not valid:', ...faults.map(escapeControlCharacters)].join('\n'));
  if (keys === null) process.exitCode = uncheckedCode;
  const lines = checked.flatMap(({ file, statement, root }) =>
    statement === null ? [] : describe(file, statement, root),
  );
  // A file of anyone: a name with line ends or escape sequences must not add a verdict of its own.
  return [
    ...lines.map(escapeControlCharacters),
    ...missing,
    keys === null ? 'the signature was not checked: name the keys of the service with --keys' : 'valid',
  ].join('\n');
}

function checkFile(file: string, keys: readonly PublicKey[] | null, keyId: string | undefined): CheckedFile {
  try {
    const statement = readStatement(readSmallFile(file));
    const { faults, root } = checkStatement(statement, keys);
    const foreign =
      keyId === undefined || statement.keyId === keyId ? [] : [`it is of another key: ${statement.keyId}`];
    return { file, statement, root, faults: [...foreign, ...faults] };
  } catch (error) {
    if (!(error instanceof StatementFormatError)) throw error;
    return { file, statement: null, root: null, faults: [error.message] };
  }
}

/** What a file says, for people. */
function describe(file: string, statement: StatedStatement, root: FoundRoot | null): readonly string[] {
  const { keyId, name, from, to, opening, closing, rows, hasMore, signedBy, folded } = statement;
  const range = rows.length === 0 ? 'no rows' : `rows ${opening.number + 1} to ${closing.number}`;
  const lines = [
    `${file}: ${keyId} (${name}), from ${from} to ${to}, signed by ${signedBy}`,
    `  ${range}: from ${formatUsd(opening.balanceNanos)} to ${formatUsd(closing.balanceNanos)} USD`,
  ];
  if (folded > 0 && opening.number === folded)
    lines.push(`  rows up to ${folded} were folded: no statement has them any more`);
  if (hasMore) lines.push('  the period has more rows: in the statement behind this one');
  if (root === null) lines.push('  in no root yet');
  else
    lines.push(
      root.coversRows
        ? `  in root ${root.number}, whose hash is ${root.hash}`
        : `  root ${root.number} is of other rows: a statement up to its row shows that it follows from these`,
    );
  return lines;
}

/** Reads the public keys of a service, from a file or from itself: its list of them, or one key in PEM. */
async function readKeys(source: string): Promise<readonly PublicKey[]> {
  const text = /^https?:\/\//.test(source) ? await fetchKeys(source) : readSmallFile(source);
  try {
    if (text.includes('-----BEGIN PUBLIC KEY-----') && !text.trimStart().startsWith('{'))
      return [readPublicKey(text)];
    const { data } = JSON.parse(text) as { readonly data: readonly { readonly public_key: string }[] };
    return data.map(({ public_key: pem }) => readPublicKey(pem));
  } catch {
    throw new Error(
      `${source} has no public keys: expected what GET /v1/statement-keys answers, or a key of Ed25519 in PEM`,
    );
  }
}

async function fetchKeys(url: string): Promise<string> {
  try {
    const answer = await sendRequest(url, { signal: AbortSignal.timeout(keysMs) });
    if (!isOk(answer)) {
      answer.destroy();
      throw new Error(`status ${answer.statusCode}`);
    }
    const text = await readStart(answer, maxFileBytes);
    if (text.length > maxFileBytes) throw new Error(`more than ${maxFileBytes} bytes`);
    return text;
  } catch (error) {
    const reason = isConnectionFault(error) ? error.code : describeError(error);
    throw new Error(`the keys at ${url} can't be read: ${reason}`, { cause: error });
  }
}

function readSmallFile(file: string): string {
  if (statSync(file).size > maxFileBytes) throw new Error(`${file} has more than ${maxFileBytes} bytes`);
  return readFileSync(file, 'latin1');
}
