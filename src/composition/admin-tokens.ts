import { randomUUID } from 'node:crypto';
import { ConfigError } from '../config/load.ts';
import { writePath } from '../config/problem.ts';
import { adminTokenSetting, otherTokensOf } from '../config/schema/admin-schema.ts';
import type { Config } from '../config/schema/schema.ts';
import type { AdminToken } from '../http/admin/access.ts';

/**
 * The tokens of the admin listener, by the config in force: the admin token is that of the start, which may be given beside the
 * config. Throws `ConfigError` if another one of the config is the same.
 */
export function followAdminTokens(first: Config, given: string | undefined) {
  const token = given ?? first.admin.token ?? randomUUID();
  return ({ admin }: Config): readonly AdminToken[] => {
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
  };
}
