import { setImmediate } from 'node:timers/promises';
import { removeOldRecords } from '../../src/operations/remove-records.ts';
import { writeArchivedRecord } from '../../src/http/present/record.ts';
import { createArchiveFolder } from '../../src/storage/archive-folder.ts';
import { createRetention } from '../../src/storage/retention.ts';
import { openThreadedEngine } from '../support/test-engine.ts';

/** Removes the records of a database into an archive, as a gateway does by itself. Arguments: the file, the folder, a time. */
const [file = '', folder = '', before = ''] = process.argv.slice(2);
const engine = openThreadedEngine(file);
await engine.ready;
process.send?.('begins');
await removeOldRecords(createRetention(engine), {
  beforeMs: Number(before),
  archive: createArchiveFolder(folder, writeArchivedRecord),
  pause: () => setImmediate(),
  onRemoved: () => {},
});
await engine.close();
process.disconnect?.();
