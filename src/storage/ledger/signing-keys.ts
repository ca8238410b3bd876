import { createPrivateKey, generateKeyPairSync } from 'node:crypto';
import type { SigningKeys } from '../../domain/ports/ledger-chain.ts';
import { signingKeyOf } from '../../domain/statements/signing-key.ts';
import type { SigningKey } from '../../domain/statements/signing-key.ts';
import type { Engine, Statement } from '../engine.ts';
import { readRows } from '../read-rows.ts';

/** The newest key that the database itself keeps. */
const selectKept: Statement = {
  sql: `SELECT private_pem FROM statement_keys WHERE private_pem IS NOT NULL ORDER BY created_at DESC, id DESC LIMIT 1`,
  values: [],
};

const selectAll: Statement = {
  sql: `SELECT id, pem, created_at FROM statement_keys ORDER BY created_at DESC, id DESC`,
  values: [],
};

/** Keeps the keys that sign statements. One that a config gives is kept without its private part. */
export function createSigningKeys(engine: Pick<Engine, 'read' | 'run'>, now: () => number): SigningKeys {
  let listed: string | null = null;
  const list = async ({ id, pem }: SigningKey, privatePem: string | null): Promise<void> => {
    await engine.run([
      {
        sql: `INSERT INTO statement_keys (id, pem, private_pem, created_at) VALUES (?, ?, ?, CAST(? AS BIGINT))
              ON CONFLICT (id) DO NOTHING`,
        values: [id, pem, privatePem, now()],
      },
    ]);
  };
  const findKept = async (): Promise<SigningKey | null> => {
    const [row] = await readRows(engine, selectKept);
    return row === undefined ? null : signingKeyOf(createPrivateKey(String(row['private_pem'])));
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
      await list(signingKeyOf(privateKey), String(privateKey.export({ format: 'pem', type: 'pkcs8' })));
      // Another node may have made one meanwhile, and all of them use the same.
      return (await findKept()) ?? signingKeyOf(privateKey);
    },
    async list() {
      return (await readRows(engine, selectAll)).map((row) => ({
        id: String(row['id']),
        pem: String(row['pem']),
        createdAtMs: Number(row['created_at']),
      }));
    },
  };
}
