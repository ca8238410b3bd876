import { randomUUID } from 'node:crypto';
import { ConfigError } from '../config/load.ts';
import { writePath } from '../config/problem.ts';
import { adminTokenSetting, otherTokensOf } from '../config/schema/admin-schema.ts';
import type { Config } from '../config/schema/schema.ts';
import type { AdminToken } from '../http/admin/access.ts';

/** The tokens of the admin listener. Throws `ConfigError` if one of the config is that which is given beside it. */
export function adminTokensOf({ admin }: Config, given: string | undefined): readonly AdminToken[] {
  const token = given ?? admin.token ?? randomUUID();
  const others = otherTokensOf(admin);
  const same = others.find((other) => other.token === token);
  if (same !== undefined)
    throw new ConfigError('the config', [
      `${writePath(['admin', ...same.path])}: expected another token than the admin token`,
    ]);
  const named = others.map(({ name, readOnly, token: own }): AdminToken => {
    return { name, role: readOnly ? 'read_only' : 'admin', token: own };
  });
  return [{ name: adminTokenSetting, role: 'admin', token }, ...named];
}
