import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { expect, onTestFinished, test } from 'vitest';
import { askAdmin } from '../../support/admin-client.ts';
import { blocksOf } from '../../support/page-blocks.ts';
import { runCommand } from '../../support/run-command.ts';
import { makeTemporaryFolder } from '../../support/temporary-folder.ts';
import { startGateway } from '../../support/test-gateway.ts';
import { createDatabase, onServer, postgresAbsence } from '../../support/test-postgres.ts';
import { postgresPrograms } from '../../support/postgres-server.ts';

const page = 'docs/operators/from-litellm.md';
const skipped = postgresAbsence === null ? '' : ` (skipped: ${postgresAbsence})`;
const secret = 'sk-Qm7xT2_vR9-kLw4ZpY8dNg';
const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex');

/** The columns of LiteLLM's tables that the documented statement reads, with the types that they have there. */
const schema = `
CREATE TABLE "LiteLLM_BudgetTable" (budget_id text PRIMARY KEY, max_budget double precision, max_parallel_requests integer,
  tpm_limit bigint, rpm_limit bigint, budget_duration text);
CREATE TABLE "LiteLLM_TeamTable" (team_id text PRIMARY KEY, models text[], blocked boolean NOT NULL DEFAULT false);
CREATE TABLE "LiteLLM_VerificationToken" (token text PRIMARY KEY, key_name text, key_alias text, spend double precision NOT NULL
  DEFAULT 0, expires timestamp(3), models text[], team_id text, max_parallel_requests integer, blocked boolean, tpm_limit bigint,
  rpm_limit bigint, max_budget double precision, budget_duration text, allowed_routes text[] DEFAULT '{}', budget_id text REFERENCES "LiteLLM_BudgetTable",
  created_at timestamp(3) DEFAULT current_timestamp);
INSERT INTO "LiteLLM_BudgetTable" VALUES ('shared', 20.5, 8, 100000, 60, '30d');
INSERT INTO "LiteLLM_TeamTable" VALUES ('some', '{small}', false), ('all', '{}', false), ('gone', '{}', true);
INSERT INTO "LiteLLM_VerificationToken" (token, key_alias, key_name, spend, max_budget, models, expires, blocked, budget_id, team_id, created_at) VALUES
  ('${hashOf(secret)}', 'ann, "quoted"', 'sk-...8dNg', 0.00001, 0.30000000000000004, '{small,"other, model"}', '2100-01-31 12:00:00.5', NULL, NULL, NULL, '2026-01-01'),
  ('${hashOf('sk-of-bob')}', NULL, 'sk-...fbob', 0, NULL, '{}', NULL, false, 'shared', NULL, '2026-01-02'),
  ('${hashOf('sk-of-carol')}', 'carol', NULL, 0, NULL, '{}', NULL, true, NULL, NULL, '2026-01-03'),
  ('${hashOf('sk-of-a-session')}', NULL, NULL, 0, NULL, '{}', NULL, NULL, NULL, 'litellm-dashboard', '2026-01-04'),
  ('${hashOf('sk-of-dan')}', 'dan', NULL, 0, NULL, '{}', NULL, NULL, NULL, 'some', '2026-01-05'),
  ('${hashOf('sk-of-eve')}', 'eve', NULL, 0, NULL, '{all-team-models}', NULL, NULL, NULL, 'all', '2026-01-06'),
  ('${hashOf('sk-of-fay')}', 'fay', NULL, 0, NULL, '{}', NULL, false, NULL, 'gone', '2026-01-07'),
  ('${hashOf('sk-of-gus')}', 'gus', NULL, 0, NULL, '{small}', NULL, NULL, NULL, NULL, '2026-01-08');
UPDATE "LiteLLM_VerificationToken" SET allowed_routes = '{management_routes}' WHERE key_alias = 'gus'`;

test.skipIf(postgresAbsence !== null)(
  `the documented commands take keys from a database of LiteLLM to a gateway that answers their holders${skipped}`,
  async () => {
    const database = await createDatabase();
    onTestFinished(() => database.drop());
    await onServer(schema, database.url);
    const gateway = await startGateway({ server: { importedKeys: true }, otherModel: 'other, model' });
    onTestFinished(() => gateway.close());
    const folder = makeTemporaryFolder();
    const text = blocksOf(page, 'sh').find((block) => block.text.includes('psql'))?.text ?? '';
    const [statement = '', ...commands] = text.trimEnd().split(/\n(?=textgate )/);
    execFileSync('sh', ['-c', statement], {
      cwd: folder,
      env: {
        ...process.env,
        LITELLM_DATABASE_URL: database.url,
        PATH: `${postgresPrograms ?? ''}:${process.env['PATH']}`,
      },
    });
    const environment = { TEXTGATE_ADMIN_URL: gateway.adminUrl, TEXTGATE_ADMIN_TOKEN: gateway.adminToken };
    const outputs: string[] = [];
    for (const command of commands) {
      const { stdout, stderr } = await runCommand(command.split(' ').slice(1), folder, environment);
      expect(stderr).toBe('');
      outputs.push(stdout);
    }
    expect(outputs[0]).toContain(
      '7 rows: 4 imported, 0 here already, 3 left out, 0 not taken; nothing is stored',
    );
    expect(outputs[1]).toContain('7 rows: 4 imported, 0 here already, 3 left out, 0 not taken\n');
    const { data } = (await askAdmin(gateway, 'GET', '/keys')).body;
    const named = (name: string): unknown =>
      (data as readonly { readonly name: string }[]).find((key) => key.name === name);
    expect(outputs[1]).toContain('fay: left out, as it is blocked there');
    expect(outputs[1]).toContain('gus: left out, as it may call no model there');
    // Keys without models of their own have those of their team.
    expect([named('dan'), named('eve')]).toMatchObject([{ models: ['small'] }, { models: null }]);
    expect([named('sk-...fbob'), named('ann, "quoted"')]).toMatchObject([
      {
        budget: { amount: '20.50', per: 'month' },
        limits: { concurrency: 8, requests_per_minute: 60, tokens_per_minute: 100_000 },
      },
      {
        balance: '0.29999',
        models: ['small', 'other, model'],
        expires_at: '2100-01-31T12:00:00.500Z',
      },
    ]);
    const headers = { authorization: `Bearer ${secret}` };
    const question = { model: 'small', messages: [{ role: 'user', content: 'x' }] };
    expect((await gateway.post('/v1/chat/completions', question, { headers })).status).toBe(200);
  },
);
