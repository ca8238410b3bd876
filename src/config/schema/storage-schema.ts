import { z } from 'zod';
import { refuseBy, valueKinds } from '../../shared/schema-values.ts';
import { describeDatabaseUrl, readDatabaseUrlFile } from '../database-url.ts';
import { defaultDatabaseUrl } from '../default-addresses.ts';
import { readableFile } from './values.ts';

const databaseUrl = z
  .string()
  .superRefine(refuseBy(describeDatabaseUrl))
  .register(valueKinds, { kind: 'database' });

/** The file of a database's URL. */
const urlFile = z.strictObject({
  file: readableFile(readDatabaseUrlFile).meta({
    description: 'The path of the file, relative to the working directory. It is read at the start.',
    examples: ['/run/secrets/database-url'],
  }),
});

/** The value of `spool` that keeps settlements in memory alone. */
export const noSpool = 'none';

/** The database, and what belongs to it. */
export const storage = z.strictObject({
  url: z
    .union([databaseUrl, urlFile])
    .default(defaultDatabaseUrl)
    .describe(
      'The database: `sqlite:` and a file, relative to the working directory, or `postgres://user:password@host:5432/database`; or the file that holds such a URL.',
    ),
  durability: z
    .enum(['normal', 'full'])
    .default('full')
    .describe(
      'With `full` every settlement, credit and change survives a power failure; with `normal` a crash of the process. PostgreSQL has settings of its own for it, and ignores this.',
    ),
  allowMigrated: z
    .boolean()
    .default(false)
    .describe(
      'Whether a gateway starts on a SQLite file that `textgate migrate` has copied to PostgreSQL. With a gateway on each, both would allow a key its whole balance.',
    ),
  spool: z
    .string()
    .min(1)
    .default('data')
    .describe(
      `The folder in which settlements are kept that PostgreSQL does not take, relative to the working directory. With \`${noSpool}\` they are kept in memory: those that PostgreSQL has not taken when the process ends are lost. A SQLite database has them beside its file.`,
    ),
});
