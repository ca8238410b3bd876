import { statSync } from 'node:fs';
import { once } from 'node:events';
import { databaseOf } from '../../storage/database-files.ts';
import { count } from '../../shared/count.ts';
import { formatUsd } from '../../shared/money.ts';
import { awaitAdmin, callAdmin, openAdmin } from '../admin-client.ts';
import { describeError } from '../describe-error.ts';
import { createSum, readArchive, writeArchive } from './archive-file.ts';
import type { ArchivedRecord, ArchiveForm } from './archive-file.ts';

/** The options of `records archive`, as commander names them. */
export interface ArchiveOptions {
  readonly before?: string;
  readonly csv?: true;
  readonly json?: true;
}

/** How many records one call removes. */
const removedAtOnce = 500;

/**
 * Writes old records to a file, then removes them from the database and folds their postings. If the file is there already,
 * an earlier run was broken off while it removed them: this one goes on with that. Without a file, prints them and removes
 * nothing.
 */
export async function archiveRecords(file: string | undefined, options: ArchiveOptions): Promise<string> {
  if (options.csv && options.json) throw new Error('give the form of the archive once: --csv or --json');
  const form = options.csv ? 'csv' : 'json';
  if (file === undefined) return printOld(form, options.before);
  const database = databaseOf(file);
  if (database !== null)
    throw new Error(`${file} belongs to the database ${database} of a gateway: choose another file`);
  const isThere = isWritten(file);
  const { answer, before } = await openArchive(form, options.before);
  if (isThere) answer.destroy();
  else
    await writeArchive(answer, file, form).catch((error: unknown) => {
      throw new Error(`nothing was removed: ${describeError(error)}`, { cause: error });
    });
  const { sum, removed } = await removeArchived(file, form, before);
  const { postings } = await awaitAdmin<{ postings: number }>('/admin/archive/folds', { method: 'POST' });
  const what = `${count(sum.records, 'record')} with charges of ${formatUsd(sum.chargeNanos)} USD`;
  return [
    isThere
      ? `${file} was there already, with ${what}: nothing was written`
      : `${file} has ${what}, all from before ${before}; it was read again and is on the disk`,
    `${count(removed, 'record')} removed from the database, ${count(postings, 'posting')} folded`,
  ].join('\n');
}

/** Whether there is an archive already. Throws for what could not be read to an end: a folder, a pipe, a device. */
function isWritten(file: string): boolean {
  const found = statSync(file, { throwIfNoEntry: false });
  if (found !== undefined && !found.isFile())
    throw new Error(`${file} exists, and is no regular file: choose another file`);
  return found !== undefined;
}

/** Old records as the gateway sends them, and the time before which they are. */
async function openArchive(form: ArchiveForm, before: string | undefined) {
  const query = before === undefined ? '' : `?${new URLSearchParams({ before }).toString()}`;
  const accept = form === 'csv' ? 'text/csv' : 'application/json';
  const answer = await openAdmin(`/admin/archive${query}`, { accept });
  return { answer, before: String(answer.headers['x-textgate-before']) };
}

/** Whether what is printed is kept can't be known here: so nothing is removed. */
async function printOld(form: ArchiveForm, before: string | undefined): Promise<string> {
  const { answer } = await openArchive(form, before);
  answer.setEncoding('utf8');
  // What is returned is printed with a line feed of its own.
  let last = '';
  for await (const piece of answer as AsyncIterable<string>) {
    if (last !== '' && !process.stdout.write(last)) await once(process.stdout, 'drain');
    last = piece;
  }
  return last.trimEnd();
}

function idsOf(records: readonly ArchivedRecord[] = []): readonly string[] {
  return records.map(({ requestId }) => requestId);
}

/** Removes from the database what a file has, some records at a time; those that are gone already are passed over. */
async function removeArchived(file: string, form: ArchiveForm, before: string) {
  const archived = createSum();
  let removed = 0;
  let batch: ArchivedRecord[] = [];
  const flush = async (): Promise<void> => {
    const { ended, lost } = Object.groupBy(batch, ({ outcome }) => (outcome === 'lost' ? outcome : 'ended'));
    const answer = await callAdmin<{ removed: number }>('POST', '/admin/archive/removals', {
      before,
      ended: idsOf(ended),
      lost: idsOf(lost),
    });
    removed += answer.removed;
    batch = [];
  };
  for await (const record of readArchive(file, form)) {
    archived.add(record);
    batch.push(record);
    if (batch.length === removedAtOnce) await flush();
  }
  if (batch.length > 0) await flush();
  return { sum: archived.sum(), removed };
}
