import { setImmediate } from 'node:timers/promises';
import OpenAI from 'openai';
import type { z } from 'zod';
import type { ConfigInput, Gateway, GatewayOptions, Key } from '../../src/index.ts';
import { createGateway } from '../../src/index.ts';
import type { listing } from '../../src/config/schema/schema.ts';
import { findCanaries, plant, plantPrompts, readDatabaseFiles } from './canaries.ts';
import type { KeySettings } from '../../src/domain/keys/api-key.ts';
import type { Limits } from '../../src/domain/limits/limits.ts';
import type { DialectName } from '../../src/protocol/upstream/dialects.ts';
import { formatUsd } from '../../src/shared/money.ts';
import type { PolicyName } from '../../src/domain/routing/policy-names.ts';

/** Creates a key with settings in the gateway's own units; its secret is looked for wherever it must not be. */
type CreateKey = (
  name: string,
  settings?: Omit<KeySettings, 'budget'>,
) => Promise<{ readonly key: Key; readonly secret: string }>;

/** A gateway on free loopback ports with a database in memory and one key. */
export interface TestGateway {
  readonly gateway: Gateway & { readonly createKey: CreateKey };
  readonly url: string;
  readonly adminUrl: string;
  readonly adminToken: string;
  readonly key: string;
  /** The official client, without retries. */
  readonly client: OpenAI;
  /** Posts with the key; `init` may replace the headers and the body. */
  post(path: string, body: unknown, init?: PostInit): Promise<Response>;
  /**
   * Resolves when the records of all dispatched requests are in the database: a fake clock that is advanced earlier has
   * them refused as late, since the database takes real time.
   */
  recorded(): Promise<void>;
  close(): Promise<void>;
}

interface PostInit extends Omit<RequestInit, 'headers'> {
  readonly headers?: Readonly<Record<string, string>>;
  readonly duplex?: 'half';
}

interface TokenPrices {
  readonly input: string;
  readonly cachedInput?: string;
  readonly cacheWrite?: string;
  readonly output: string;
}

/** A shadow route of a model, as a config has it. */
export interface ShadowInput {
  readonly route: { readonly upstream: string; readonly model: string };
  readonly share: number;
  readonly free?: true;
  readonly price?: TokenPrices;
  readonly budgetPerDay?: string;
  readonly maxInFlight?: number;
}

export interface TestGatewayOptions extends GatewayOptions {
  readonly upstreamUrl?: string;
  /** Upstreams beside or instead of `local`, and the routes of `small` over them. */
  readonly upstreams?: ConfigInput['upstreams'];
  readonly routes?: readonly {
    readonly upstream: string;
    readonly model: string;
    readonly weight?: number;
    readonly cost?: { readonly input: string; readonly output: string };
    readonly retryWithin?: string;
  }[];
  /** Settings of `small` beside its routes and its price. */
  readonly settings?: {
    readonly thinks?: true;
    readonly hedge?: { readonly after?: string; readonly budget?: string };
  };
  /** How the routes of `small` are ordered. */
  readonly policy?: PolicyName;
  readonly passthrough?: ConfigInput['passthrough'];
  readonly receipts?: ConfigInput['receipts'];
  readonly groups?: ConfigInput['groups'];
  readonly keys?: ConfigInput['keys'];
  readonly webhooks?: ConfigInput['webhooks'];
  readonly events?: ConfigInput['events'];
  readonly metering?: ConfigInput['metering'];
  readonly resume?: ConfigInput['resume'];
  readonly compatibility?: ConfigInput['compatibility'];
  readonly metrics?: ConfigInput['metrics'];
  /** The dialect of the upstream. */
  readonly dialect?: DialectName;
  readonly finishReason?: 'required' | 'optional';
  readonly timeouts?: {
    connect?: string;
    firstByte?: string;
    firstText?: string;
    idle?: string;
    total?: string;
  };
  readonly limits?: Partial<Limits> & {
    readonly balanceMode?: 'soft' | 'strict';
    readonly queueWait?: string;
    readonly lowBalance?: string;
  };
  /** The price of `small`, in USD per million tokens; it is free without one. */
  readonly price?:
    | { readonly list: string; readonly times?: string }
    | (TokenPrices & {
        readonly above?: TokenPrices & { readonly inputTokens: number };
      });
  readonly holdTokens?: number;
  /** The shadow route of `small`. */
  readonly shadow?: ShadowInput;
  /** Its port is a free one unless it is given. */
  readonly server?: Omit<NonNullable<ConfigInput['server']>, 'host'>;
  /** The path of the database; it is in memory without one. */
  readonly storage?: string;
  /** Settings of the operators' listener beside its port and its token. */
  readonly admin?: Pick<NonNullable<ConfigInput['admin']>, 'host' | 'hosts' | 'readOnlyToken' | 'tokens'>;
  /** The URL of a database on a server, instead. */
  readonly databaseUrl?: string;
  readonly spool?: string;
  readonly durability?: 'normal' | 'full';
  /** Whether models are discovered from the upstream; otherwise `small` is served by its `tiny`. */
  readonly discover?: boolean;
  /** The name of a second model, which is served as `small` is; there is none without it. */
  readonly otherModel?: string;
  /** Further models. */
  readonly models?: z.input<typeof listing>['models'];
}

const adminToken = 'an-admin-token-for-tests';

export async function startGateway(options: TestGatewayOptions = {}): Promise<TestGateway> {
  const { upstreamUrl = 'demo:', timeouts = {}, limits = {}, server = {}, ...rest } = options;
  const { dialect = 'chat', finishReason = 'required' } = options;
  const shared = {
    server: { ...(server.socket === undefined ? { port: 0 } : {}), ...server },
    admin: { port: 0, token: adminToken, ...options.admin },
    storage: {
      url: options.databaseUrl ?? `sqlite:${options.storage ?? ':memory:'}`,
      durability: options.durability ?? 'normal',
      ...(options.spool === undefined ? {} : { spool: options.spool }),
    },
    limits,
    passthrough: options.passthrough,
    receipts: options.receipts,
    groups: options.groups,
    keys: options.keys,
    webhooks: options.webhooks,
    events: options.events,
    metering: options.metering,
    resume: options.resume,
    compatibility: options.compatibility,
    metrics: options.metrics,
    upstreams: {
      local: {
        url: upstreamUrl,
        apiKey: 'sk-upstream-secret',
        timeouts,
        dialects: [dialect],
        finishReason,
      },
      ...options.upstreams,
    },
  };
  const { price, holdTokens, policy, settings = {} } = options;
  const small = {
    ...settings,
    routes: [...(options.routes ?? [{ upstream: 'local', model: 'tiny' }])],
    ...(price === undefined ? { free: true as const } : { price }),
    ...(holdTokens === undefined ? {} : { holdTokens }),
    ...(options.shadow === undefined ? {} : { shadow: options.shadow }),
    ...(policy === undefined ? {} : { policy }),
  };
  const config: ConfigInput = options.discover
    ? { ...shared, models: { from: 'local' } }
    : {
        ...shared,
        models: {
          small,
          ...(options.otherModel === undefined ? {} : { [options.otherModel]: small }),
          ...options.models,
        },
      };
  let written = '';
  const logDestination = { write: (line: string) => void (written += line) };
  const gateway: Gateway = createGateway(config, { logLevel: 'info', logDestination, ...rest });
  plant(...Object.values(config.webhooks ?? {}).flatMap(({ secret }) => secret));
  plant(
    adminToken,
    options.admin?.readOnlyToken,
    ...(options.admin?.tokens ?? []).map(({ token }) => token),
    ...Object.values(config.upstreams).map(({ apiKey }) => apiKey),
  );
  const { url, adminUrl } = await gateway.listen();
  const createKey = creatorOf(gateway);
  const { secret: key } = await createKey('test');
  const refused: Promise<string>[] = [];
  return {
    gateway: { ...gateway, createKey },
    url,
    adminUrl,
    adminToken,
    key,
    client: new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0 }),
    async post(path, body, init = {}) {
      plantPrompts(body);
      const response = await fetch(url + path, {
        method: 'POST',
        body: typeof body === 'string' ? body : JSON.stringify(body),
        ...init,
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...init.headers },
      });
      if (response.status >= 400 && path.startsWith('/v1/')) refused.push(response.clone().text());
      return response;
    },
    async recorded() {
      // Writes are committed in order; one turn later the requests have continued, too.
      await createKey('written after the records');
      await setImmediate();
    },
    async close() {
      const metrics = await fetch(`${adminUrl}/metrics`).then(
        (response) => response.text(),
        () => '',
      );
      await gateway.close();
      const database = readDatabaseFiles(options.storage ?? ':memory:');
      const errors = (await Promise.allSettled(refused)).map((found) =>
        found.status === 'fulfilled' ? found.value : '',
      );
      findCanaries({ 'the log': written, metrics, database, 'an error': errors.join('\n') });
    },
  };
}

function creatorOf({ keys }: Gateway): CreateKey {
  return async (name, settings = {}) => {
    const { balanceNanos, lowBalanceNanos: low, queueWaitMs, expiresAt, ...rest } = settings;
    const { models, allowFrom, tags, joinRetriesMs: joinMs, ...others } = rest;
    const { key: secret, ...key } = await keys.create({
      ...others,
      name,
      models: models && [...models],
      allowFrom: allowFrom && [...allowFrom],
      tags: tags && [...tags],
      balance: balanceNanos === undefined ? undefined : formatUsd(balanceNanos),
      lowBalance: typeof low === 'number' ? formatUsd(low) : low,
      queueWait: queueWaitMs === undefined ? undefined : `${queueWaitMs}ms`,
      joinRetries: typeof joinMs === 'number' ? `${joinMs}ms` : joinMs,
      expiresAt: typeof expiresAt === 'number' ? new Date(expiresAt).toISOString() : expiresAt,
    });
    plant(secret);
    return { key, secret };
  };
}
