import type { PresentedImport } from '../../../http/admin/keys.ts';
import { escapeControlCharacters } from '../../../shared/control-characters.ts';
import { count } from '../../../shared/count.ts';
import { AdminRefusal, callAdmin } from '../../admin-client.ts';
import { describeError } from '../../describe-error.ts';
import { withFieldNames } from '../../keys/key-options.ts';
import { openExport } from '../../reconcile/read-export.ts';
import type { ExportRow } from '../../reconcile/read-export.ts';
import { columnsOf, importOf, keyRow, notesOf } from './read-row.ts';

/** The most rows of a file: all of them are read before the first key is imported. */
const maxRows = 100_000;

/** What became of a row. */
type Outcome = 'imported' | 'here already' | 'left out' | 'not taken';

interface Result {
  readonly outcome: Outcome;
  readonly text: string;
}

/**
 * Imports the keys of LiteLLM from a CSV of its table into the gateway, or only says what would happen, and prints a line for
 * each row. Keys that are there stay as they are. Exits with 1 where a row can't be taken; rows behind it are. Throws before the
 * first key is imported if the file can't be read as a whole.
 */
export async function importKeys(file: string, isDry: boolean): Promise<void> {
  const rows = await readRows(file).catch((error: unknown) => {
    const text = describeError(error);
    throw new Error(text.startsWith(file) ? text : `${file}: ${text}`);
  });
  const counts: Record<Outcome, number> = { imported: 0, 'here already': 0, 'left out': 0, 'not taken': 0 };
  const places = new Map<unknown, string>();
  for (const row of rows) {
    const token = String(row.get('token')).toLowerCase();
    const first = places.get(token);
    const { outcome, text } =
      first === undefined ? await importRow(row, isDry) : leftOut(`it is the key of ${first}`);
    if (outcome !== 'not taken') places.set(token, first ?? row.place);
    counts[outcome]++;
    console.log(escapeControlCharacters(`${row.place}: ${text}`));
  }
  const sums = Object.entries(counts).map(([outcome, rowsOf]) => `${rowsOf} ${outcome}`);
  console.log(`${count(rows.length, 'row')}: ${sums.join(', ')}${isDry ? '; nothing is stored' : ''}`);
  if (counts['not taken'] > 0) process.exitCode = 1;
}

async function readRows(file: string): Promise<readonly ExportRow[]> {
  const { form, has, rows } = await openExport(file);
  // Without one of them a limit would be gone.
  const missing = Object.keys(keyRow.shape).find((column) => form !== 'csv' || !has(column));
  if (missing !== undefined)
    throw new Error(
      `the first line has no column ${missing}: expected a CSV of LiteLLM_VerificationToken with its header`,
    );
  const read: ExportRow[] = [];
  for await (const row of rows) {
    if (read.length === maxRows) throw new Error(`more than ${maxRows} rows: use several files`);
    read.push(row);
  }
  return read;
}

async function importRow({ place, get }: ExportRow, isDry: boolean): Promise<Result> {
  const cells = Object.fromEntries(Object.keys(keyRow.shape).map((column) => [column, get(column)]));
  const read = keyRow.safeParse(cells);
  if (!read.success) {
    const [issue] = read.error.issues;
    return notTaken(`${issue?.path.join('.')}: ${issue?.message}`);
  }
  const row = read.data;
  const name = row.key_alias ?? row.key_name ?? `key of ${place}`;
  if (row.allowed_routes === false) return leftOut('it may call no model there', name);
  if (row.blocked === true) return leftOut('it is blocked there', name);
  if (row.expires !== null && row.expires <= Date.now()) return leftOut('it has expired', name);
  const body = Object.assign(importOf(row, name), { dryRun: isDry });
  try {
    const { id, imported } = await withFieldNames(
      () => callAdmin<PresentedImport>('POST', '/admin/keys/import', body),
      columnsOf,
    );
    if (id !== null && !imported) return { outcome: 'here already', text: `${name}: here already as ${id}` };
    return {
      outcome: 'imported',
      text: `${name}: ${id === null ? 'can be imported' : `imported as ${id}`}${notesOf(row)}`,
    };
  } catch (error) {
    // Any other refusal is not the row's, and would be that of all that follow.
    if (!(error instanceof AdminRefusal) || error.status !== 400) throw error;
    return notTaken(error.message);
  }
}

function leftOut(why: string, name?: string): Result {
  return { outcome: 'left out', text: `${name === undefined ? '' : `${name}: `}left out, as ${why}` };
}

/** Without the name: it may be what is wrong, or a key in its place. */
function notTaken(why: string): Result {
  return { outcome: 'not taken', text: `not taken: ${why}` };
}
