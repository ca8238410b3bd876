import { createPrivateKey, generateKeyPairSync } from 'node:crypto';
import type { SigningKeys } from '../../domain/ports/ledger-chain.ts';
import { signingKeyOf } from '../../shared/signing-key.ts';
import type { SigningKey } from '../../shared/signing-key.ts';
import type { Engine, Row, Statement } from '../engine.ts';
import { readRows, sql } from '../statements.ts';

/** All keys: there are as many as there were rotations. */
const selectKeys: Statement = sql`SELECT id, pem, private_pem, created_at FROM statement_keys`;

/** Keeps the keys that sign statements. One that a config gives is kept without its private part. */
export function createSigningKeys(engine: Pick<Engine, 'read' | 'run'>, now: () => number): SigningKeys {
  let listed: string | null = null;
  const list = async ({ id, pem }: SigningKey, privatePem: string | null): Promise<void> => {
    await engine.run([
      sql`INSERT INTO statement_keys (id, pem, private_pem, created_at) VALUES (${id}, ${pem}, ${privatePem}, CAST(${now()} AS BIGINT))
        ON CONFLICT (id) DO NOTHING`,
    ]);
  };
  const readNewestFirst = async (): Promise<readonly Row[]> =>
    (await readRows(engine, selectKeys)).toSorted(
      (one, other) =>
        Number(other['created_at']) - Number(one['created_at']) ||
        (String(one['id']) < String(other['id']) ? 1 : -1),
    );
  /** The newest key that the database itself keeps. */
  const findKept = async (): Promise<SigningKey | null> => {
    const kept = (await readNewestFirst()).find((row) => row['private_pem'] !== null);
    return kept === undefined ? null : signingKeyOf(createPrivateKey(String(kept['private_pem'])));
  };
  return {
    async current(given) {
      if (given !== null) {
        if (listed !== given.id) await list(given, null);
        listed = given.id;
        return given;
      }
      const kept = await findKept();
      if (kept !== null) return kept;
      const { privateKey } = generateKeyPairSync('ed25519');
      await list(signingKeyOf(privateKey), privateKey.export({ format: 'pem', type: 'pkcs8' }));
      // Another node may have made one meanwhile, and all of them use the same.
      return (await findKept()) ?? signingKeyOf(privateKey);
    },
    async list() {
      return (await readNewestFirst()).map((row) => ({
        id: String(row['id']),
        pem: String(row['pem']),
        createdAtMs: Number(row['created_at']),
      }));
    },
  };
}
