import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import {
  adminTokenPlace,
  isSamePlace,
  ensureAdminToken,
  oldAdminTokenFile,
} from '../../config/admin-token.ts';
import type { Notice } from '../../config/admin-token.ts';
import { isSharedDatabase, readDatabaseUrl } from '../../config/database-url.ts';
import type { Config } from '../../config/schema/schema.ts';

/** The admin token of a gateway that starts, and the file that it is from; `null` for none. */
interface OwnToken {
  readonly token: string | null;
  readonly file: string | null;
}

/** What an operator of several nodes does where no token file can be theirs. */
const remedy =
  'Give all nodes on the database the same one, as admin.token or TEXTGATE_ADMIN_TOKEN, or a folder that they share as admin.tokenFolder';

/**
 * The admin token of the config, or else of the token file. Nodes on one database get no file where none of their folders is
 * known or can be written: a command that reaches another node would be refused.
 */
export function adminTokenOf(
  { admin, storage }: Config,
  configFile: string | undefined,
  notice: Notice,
): OwnToken {
  if (admin.token !== undefined) return { token: admin.token, file: null };
  const { tokenFolder } = admin;
  const file = adminTokenPlace({ tokenFolder, databaseUrl: readDatabaseUrl(storage.url), configFile });
  if (file === null) return withoutToken('', notice);
  const isNew = !existsSync(file);
  try {
    const token = ensureAdminToken(file, notice);
    if (isNew && isShared(storage, admin))
      notice(`a new admin token is in ${file}: other nodes on the database need the same one. ${remedy}`);
    if (isNew && existsSync(oldAdminTokenFile) && !isSamePlace(file, oldAdminTokenFile))
      notice(
        `${oldAdminTokenFile}, where earlier versions kept the admin token, is not read: the token is in ${file} now. To keep the old one, move it there and start again`,
      );
    return { token, file };
  } catch (error) {
    const isUnwritable = unwritable.has((error as NodeJS.ErrnoException).code ?? '');
    if (!isUnwritable || !isShared(storage, admin)) throw error;
    return withoutToken(` in ${dirname(file)}, which can't be written`, notice);
  }
}

/** Faults of a folder that is meant for the config alone, as one that a container mounts. */
const unwritable = new Set(['EROFS', 'EACCES', 'EPERM']);

/** Whether the folder of the token is one that other nodes on the database may not have. */
function isShared({ url }: Config['storage'], { tokenFolder }: Config['admin']): boolean {
  return tokenFolder === undefined && isSharedDatabase(url);
}

function withoutToken(where: string, notice: Notice): OwnToken {
  notice(`no admin token${where}: /admin refuses all calls. ${remedy}`);
  return { token: null, file: null };
}
