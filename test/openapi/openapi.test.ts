import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Validator } from '@seriousme/openapi-schema-validator';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { OpenAPIClientAxios } from 'openapi-client-axios';
import type { AxiosResponse, Document, OpenAPIClient } from 'openapi-client-axios';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/composition/clock.ts';
import { playProvider } from '../support/examine.ts';
import { generatedFile } from '../support/generated-file.ts';
import { parseFrames } from '../support/parse-frames.ts';
import { sayTexts, startUpstream } from '../support/scripted-upstream.ts';
import type { ScriptedUpstream } from '../support/scripted-upstream.ts';
import { eventually } from '../support/eventually.ts';
import { startGateway } from '../support/test-gateway.ts';
import type { TestGateway } from '../support/test-gateway.ts';
import { openApiDocument } from './document.ts';

const written = `${JSON.stringify(openApiDocument(), null, 2)}\n`;
const found = generatedFile('docs/openapi.json', written);
const document = JSON.parse(found) as {
  readonly paths: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
};

const ajv = new Ajv2020({ strict: false, allErrors: true });
addFormats.default(ajv);
ajv.addSchema({ $id: 'textgate', ...document });

/** What of a value is not as one of the document's schemas says. */
function faultsOf(name: string, value: unknown): readonly unknown[] {
  const validate = ajv.getSchema(`textgate#/components/schemas/${name}`);
  if (validate === undefined) throw new Error(`the document has no schema ${name}`);
  return validate(value) === true ? [] : (validate.errors ?? []);
}

/** The name of the schema of an operation's answer. */
function schemaOf(operationId: string, status: number): string {
  const operations = Object.values(document.paths).flatMap((item) => Object.values(item));
  const operation = operations.find(
    (one) => (one as { operationId?: string }).operationId === operationId,
  ) as {
    responses: Record<string, { content: Record<string, { schema: { $ref?: string } }> }>;
  };
  const responses = operation.responses[status] ?? operation.responses[`${Math.floor(status / 100)}XX`];
  return responses?.content['application/json']?.schema.$ref?.split('/').at(-1) ?? 'none';
}

test('the document is made of the contract, the schemas and the error codes of the source', () => {
  expect(found).toBe(written);
});

test('the document has the routes of the admin API that the page lists, and no others', () => {
  const page = readFileSync(join(import.meta.dirname, '../../docs/operators/admin-api.md'), 'utf8');
  const listed = [...page.matchAll(/`(GET|POST|PATCH|DELETE) (\/admin\/[^?`]*)/g)];
  const described = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.keys(item)
      .filter((field) => field !== 'servers' && path.startsWith('/admin/'))
      .map((method) => `${method.toUpperCase()} ${path.replaceAll('request_id', 'id')}`),
  );
  const routes = listed.map(([, method, path]) => `${method} ${path?.replaceAll('request_id', 'id')}`);
  expect(described.toSorted()).toEqual(routes.toSorted());
});

test('the document is valid OpenAPI 3.1', async () => {
  const { valid, errors } = await new Validator().validate(JSON.parse(found));
  expect({ valid, errors }).toMatchObject({ valid: true });
});

describe('a client that is generated from the document', () => {
  let upstream: ScriptedUpstream;
  let gateway: TestGateway;
  /** How far its clock is ahead, in milliseconds. */
  let aheadMs = 0;
  let clients: { readonly of: OpenAPIClient; readonly operators: OpenAPIClient };
  beforeAll(async () => {
    upstream = await startUpstream();
    upstream.play(sayTexts(['Hello', ' there']));
    gateway = await startGateway({
      clock: { ...systemClock, now: () => systemClock.now() + aheadMs },
      upstreamUrl: upstream.url,
      price: { input: '1', output: '2' },
      shadow: { route: { upstream: 'local', model: 'other' }, share: 1, free: true },
      server: { importedKeys: true },
      groups: { research: { concurrency: 8, budget: { amount: '500', per: 'month', warnAt: ['0.8'] } } },
    });
    const clientFor = (url: string, token: string): OpenAPIClient =>
      new OpenAPIClientAxios({
        definition: {
          ...document,
          servers: [{ url }],
          paths: Object.fromEntries(
            Object.entries(document.paths).map(([path, item]) => [path, { ...item, servers: [{ url }] }]),
          ),
        } as unknown as Document,
        axiosConfigDefaults: {
          adapter: 'fetch',
          headers: { authorization: `Bearer ${token}` },
          validateStatus: () => true,
        },
      }).initSync();
    clients = {
      of: clientFor(gateway.url, gateway.key),
      operators: clientFor(gateway.adminUrl, gateway.adminToken),
    };
  });
  afterAll(async () => {
    await gateway.close();
    await upstream.close();
  });

  const call = async (
    who: 'of' | 'operators',
    operation: string,
    parameters?: object | null,
    body?: unknown,
  ): Promise<AxiosResponse> => {
    const run = clients[who][operation] as (given?: object | null, sent?: unknown) => Promise<AxiosResponse>;
    return run(parameters, body);
  };
  /** Calls an operation and expects the answer that the document promises. */
  const expectAs = async (...called: Parameters<typeof call>): Promise<AxiosResponse> => {
    const answer = await call(...called);
    const schema = schemaOf(called[1], answer.status);
    expect({ operation: called[1], faults: faultsOf(schema, answer.data) }).toEqual({
      operation: called[1],
      faults: [],
    });
    return answer;
  };

  const chat = { model: 'small', messages: [{ role: 'user', content: 'Say hello' }] };
  const asked = { model: 'small', input: [{ role: 'user', content: [{ type: 'input_text', text: 'x' }] }] };

  test('generates texts, whole, and reads what they cost', async () => {
    const whole = await expectAs('of', 'createChatCompletion', null, { ...chat, temperature: 1, stop: [] });
    expect(whole.data.choices[0].message.content).toBe('Hello there');
    const response = await expectAs('of', 'createResponse', null, { ...asked, metadata: { ticket: '7' } });
    expect(response.data.metadata).toEqual({ ticket: '7' });
    await gateway.recorded();
    const { data } = await expectAs('of', 'listReceipts', { limit: 10 });
    expect(data.data).toHaveLength(2);
    await expectAs('of', 'getReceipt', { request_id: data.data[0].request_id });
    await expectAs('operators', 'getRecord', { request_id: data.data[0].request_id });
    await expectAs('operators', 'listRecords', { limit: 1, model: 'small' });
    await expectAs('operators', 'getFailures', { from: '2020-01-01' });
    await expectAs('operators', 'getLatencies', { slots: 2 });
    await expectAs('operators', 'listAudit', { limit: 1, action: 'key.create' });
    await expectAs('operators', 'getStatus', { limit: 1 });
    aheadMs = 15_000;
    await eventually('the interval of the requests is stored', async () => {
      const history = await expectAs('operators', 'getHistory', { by: 'upstream,model' });
      return history.data.points.some(({ groups }: { groups: readonly object[] }) => groups.length > 0);
    });
    await expectAs('operators', 'listUpstreams');
    const shadows = await expectAs('operators', 'listShadows');
    expect(shadows.data.data).toMatchObject([{ model: 'small', upstream_model: 'other' }]);
    expect((await expectAs('operators', 'examineUpstream', { name: 'none' }, {})).status).toBe(404);
    const own = await expectAs('of', 'getOwnUsage', { by: 'day,model,tag' });
    const all = await expectAs('operators', 'getUsage', { by: 'hour,key,upstream,outcome', limit: 1 });
    expect([own.data.data[0].requests, all.data.data[0].requests]).toEqual([2, 2]);
  });

  test.for([
    ['createChatCompletion', 'ChatCompletionChunk', { ...chat, stream: true }],
    ['createResponse', 'ResponseEvent', { ...asked, stream: true }],
  ] as const)('reads the events of a stream (%s)', async ([operation, schema, sent]) => {
    const { data } = await call('of', operation, null, sent);
    const events = parseFrames(String(data)).map(({ data: event }) => event);
    const objects = events.filter((event) => event !== '[DONE]');
    expect(objects.length).toBeGreaterThan(2);
    for (const object of objects) expect(faultsOf(schema, object)).toEqual([]);
  });

  test('sets a ceiling of costs, and reads what an answer costs from its head and from its usage', async () => {
    const created = await call('operators', 'createKey', null, {
      name: 'showing',
      compatibility: { usageCost: true },
    });
    const headers = { authorization: `Bearer ${String(created.data.key)}` };
    const complete = clients.of['createChatCompletion'] as (
      given: object,
      sent: unknown,
      config: object,
    ) => Promise<AxiosResponse>;
    const refused = await complete({ 'x-textgate-max-cost': '0.000001' }, chat, { headers });
    expect(refused).toMatchObject({ status: 400, data: { error: { code: 'max_cost_exceeded' } } });
    const whole = await complete({ 'x-textgate-max-cost': '5' }, chat, { headers });
    expect(faultsOf('ChatCompletion', whole.data)).toEqual([]);
    expect(whole.headers['x-textgate-charge']).toBe('0.000025');
    expect(whole.data.usage.cost).toBe(0.000025);
    const response = await (clients.of['createResponse'] as typeof complete)({}, asked, { headers });
    expect(faultsOf('Response', response.data)).toEqual([]);
    expect(response.data.usage.cost).toBe(0.000025);
  });

  test('reads models, its key, and refusals', async () => {
    await expectAs('of', 'listModels');
    await expectAs('of', 'getModel', { model: 'small' });
    await expectAs('of', 'getOwnKey');
    await expectAs('of', 'listStatementKeys');
    expect((await call('of', 'getOwnStatement', { from: '2030-01-01' })).data).toMatch(
      /^textgate statement 1\n/,
    );
    const refusals = [
      await expectAs('of', 'createChatCompletion', null, { ...chat, tools: [{ type: 'function' }] }),
      await expectAs('of', 'getModel', { model: 'none' }),
      await expectAs('of', 'cancelOwnRequest', { request_id: 'none' }),
      await expectAs('operators', 'createKey', null, { nam: 'bob' }),
    ];
    expect(refusals.map(({ status }) => status)).toEqual([400, 404, 404, 400]);
  });

  test('gives a key a group, and reads what its keys have spent', async () => {
    const created = await expectAs('operators', 'createKey', null, { name: 'ann', group: 'research' });
    const { data } = await expectAs('operators', 'listGroups');
    expect(data.data).toMatchObject([{ name: 'research', concurrency: 8, budget: { amount: '500.00' } }]);
    const headers = { authorization: `Bearer ${String(created.data.key)}` };
    const read = clients.of['getOwnKey'] as (...given: unknown[]) => Promise<AxiosResponse>;
    const own = await read(null, null, { headers });
    expect(own.data.group).toEqual(data.data[0]);
    expect(faultsOf('OwnKey', own.data)).toEqual([]);
    const { id } = created.data;
    const unknown = await expectAs('operators', 'changeKey', { id }, { group: 'other' });
    expect([unknown.status, unknown.data.error.param]).toEqual([400, 'group']);
    const alone = await expectAs('operators', 'changeKey', { id }, { group: null });
    expect(alone.data.group).toBeNull();
  });

  test('manages keys, and reads the state of the service', async () => {
    const created = await expectAs('operators', 'createKey', null, { name: 'bob', balance: '5.00' });
    expect(created.status).toBe(201);
    const { id } = created.data;
    await expectAs('operators', 'changeKey', { id }, { concurrency: 3, expiresAt: '2030-01-01' });
    await expectAs('operators', 'creditKey', { id }, { amount: '1.50', reference: 'payment 1' });
    await expectAs('operators', 'rotateKey', { id }, { grace: '1h' });
    await expectAs('operators', 'getKey', { id });
    await expectAs('operators', 'listKeys', { limit: 10, search: 'BO', status: 'active' });
    expect((await call('operators', 'getStatement', { id, after: 1 })).data).toContain('\nrow ');
    await expectAs('operators', 'listLedgerRoots', { limit: 10 });
    await expectAs('operators', 'revokeKey', { id });
    const hash = `sha256:${'5'.repeat(64)}`;
    const dry = await expectAs('operators', 'importKey', null, { name: 'eve', hash, dryRun: true });
    expect(dry.data).toEqual({ id: null, imported: false });
    await expectAs('operators', 'importKey', null, { name: 'eve', hash });
    await expectAs('operators', 'removeRecords', null, { before: '2020-01-01', ended: [] });
    await expectAs('operators', 'foldLedger');
    const session = await expectAs('operators', 'openSession', null, { token: gateway.adminToken });
    expect(session.data).toMatchObject({ role: 'admin' });
    await expectAs('operators', 'getSession');
    for (const operation of ['listRunningRequests', 'verifyLedger', 'getHealth', 'getReadiness'])
      await expectAs('operators', operation);
  });

  test('examines an upstream', async () => {
    playProvider(upstream);
    const { status } = await expectAs('operators', 'examineUpstream', { name: 'local' }, { model: 'tiny' });
    expect(status).toBe(200);
  });
});

describe('the requests of the document', () => {
  test('are those that the gateway takes', () => {
    expect(faultsOf('ChatCompletionRequest', { model: 'small', messages: [] })).not.toEqual([]);
    expect(
      faultsOf('ChatCompletionRequest', { model: 'small', messages: [{ role: 'user', content: 'x' }] }),
    ).toEqual([]);
    const withTools = { model: 'small', input: 'x', tools: [{ type: 'function' }] };
    expect(faultsOf('ResponseRequest', withTools)).not.toEqual([]);
    expect(faultsOf('ResponseRequest', { ...withTools, tools: [] })).toEqual([]);
  });
});
