import type { z } from 'zod';
import { budgetOf, changesOf } from '../../domain/budgets/budget.ts';
import type { Actor } from '../../domain/audit/audit-line.ts';
import type { ApiKey, KeySettings } from '../../domain/keys/api-key.ts';
import type { ReadRefused } from '../../operations/key-use.ts';
import type { IssuedKey, KeyManagement } from '../../operations/manage-keys.ts';
import { isRefusal, refuse } from '../../shared/errors.ts';
import type { Refusal } from '../../shared/errors.ts';
import { sendAnswer } from '../answers/respond.ts';
import { check, unknownCursor, pathIdOf, readJson, readWholeQuery } from '../checked-input.ts';
import { presentAccount, presentManagedKey } from '../present/key.ts';
import type { KeyDefaults } from '../present/key.ts';
import { presentList } from '../present/list.ts';
import { addRoutes } from '../route-table.ts';
import type { Route } from '../route-table.ts';
import { createRouter } from '../router.ts';
import type { Router } from '../router.ts';
import { actorOf } from './acts.ts';
import { findUnknownGroup } from './groups.ts';
import type { GroupReads } from './groups.ts';
import { changedKey, importedKey, keyQuery, newKey, payment, rotation } from './key-inputs.ts';
import { findSecretText } from './secret-texts.ts';
import type { IsSecret } from './secret-texts.ts';
import { findUselessSetting } from './useless-settings.ts';
import type { UseOfKeys } from './useless-settings.ts';

/** The dependencies of the key routes. */
export interface KeyAdministration extends GroupReads, UseOfKeys {
  readonly defaults: KeyDefaults;
  readonly keys: KeyManagement;
  /** Whether imported keys may be used. */
  readonly takesImported: boolean;
  readonly refusedToday: ReadRefused;
  readonly isSecret: IsSecret;
}

/** The input of the list. */
export type KeyQuery = z.input<typeof keyQuery>;

/** What an operator does with keys: unchecked input in, JSON as operators see it out. */
type KeyOperations = ReturnType<typeof createKeyOperations>;

/** The input of creating a key. */
export type NewKey = z.input<typeof newKey>;

/** Changes to a key: `null` removes a setting. */
export type ChangedKey = z.input<typeof changedKey>;

export type Rotation = z.input<typeof rotation>;

export type Payment = z.input<typeof payment>;

/** A key as operators see it. */
export type PresentedKey = ReturnType<typeof presentManagedKey>;

/** What became of an import: the key that has the hash, `null` where a dry run found none, and whether it is new. */
export interface PresentedImport {
  readonly id: string | null;
  readonly imported: boolean;
}

export type PresentedAccount = ReturnType<typeof presentAccount>;

export function createKeyOperations(administration: KeyAdministration) {
  const { keys, groups } = administration;
  const present = async (found: ApiKey | Refusal): Promise<PresentedKey | Refusal> => {
    if (isRefusal(found)) return found;
    const [presented] = await presentAll([found], administration);
    return presented as PresentedKey;
  };
  const presentIssued = async (issued: IssuedKey | Refusal) => {
    if (isRefusal(issued)) return issued;
    const presented = await present(issued.key);
    return isRefusal(presented) ? presented : { ...presented, key: issued.secret };
  };
  return {
    async create(by: Actor, input: unknown) {
      const body = check(input, newKey);
      if (isRefusal(body)) return body;
      const settings = await readSettings(body, administration);
      return isRefusal(settings) ? settings : presentIssued(await keys.issue(by, body.name, settings));
    },
    async import(by: Actor, input: unknown): Promise<PresentedImport | Refusal> {
      if (!administration.takesImported) return importsOff();
      const body = check(input, importedKey);
      if (isRefusal(body)) return body;
      const { hash, dryRun, ...given } = body;
      // Before its settings are: a model of theirs may have gone since an earlier import of the same key.
      const holder = await keys.findHolder(hash);
      if (holder !== null) return { id: holder, imported: false };
      const settings = await readSettings(given, administration);
      if (isRefusal(settings)) return settings;
      return dryRun === true ? { id: null, imported: false } : keys.import(by, hash, given.name, settings);
    },
    async list(query: unknown) {
      const wanted = check(query, keyQuery);
      if (isRefusal(wanted)) return wanted;
      const { limit: most, before, search, status: state } = wanted;
      const found = await keys.list({ search, state }, most, before ?? null);
      if (found === null) return unknownCursor();
      return presentList(await presentAll(found.keys, administration), found.next);
    },
    get: async (id: string) => present(await keys.show(id)),
    async update(by: Actor, id: string, input: unknown) {
      const body = check(input, changedKey);
      if (isRefusal(body)) return body;
      const useless =
        findSecretText(body, administration.isSecret) ??
        findUnknownGroup(body.group, groups) ??
        (await findUselessSetting(body, administration, () => keys.show(id)));
      if (useless !== null) return useless;
      const { queueWait: queueWaitMs, lowBalance: lowBalanceNanos, budget: given, ...others } = body;
      const { joinRetries: joinRetriesMs, ...changes } = others;
      const budget = given && changesOf(given);
      const terms = { ...changes, queueWaitMs, lowBalanceNanos, joinRetriesMs, budget };
      return present(await keys.change(by, id, withoutAbsent(terms)));
    },
    revoke: async (by: Actor, id: string) => present(await keys.revoke(by, id)),
    async rotate(by: Actor, id: string, input: unknown) {
      const body = check(input, rotation);
      return isRefusal(body) ? body : presentIssued(await keys.rotate(by, id, body.grace));
    },
    async credit(by: Actor, id: string, input: unknown) {
      const body = check(input, payment);
      if (isRefusal(body)) return body;
      const secret = findSecretText(body, administration.isSecret);
      if (secret !== null) return secret;
      const paid = await keys.credit(by, { keyId: id, nanos: body.amount, reference: body.reference });
      return isRefusal(paid) ? paid : { id, booked: paid.booked, ...presentAccount(paid.account) };
    },
  };
}

/** The settings of a new key in the service's units; a refusal of those with which it could not be used. */
async function readSettings(
  { name, ...body }: z.output<typeof newKey>,
  administration: KeyAdministration,
): Promise<KeySettings | Refusal> {
  const useless =
    findSecretText({ name, tags: body.tags }, administration.isSecret) ??
    findUnknownGroup(body.group, administration.groups) ??
    (await findUselessSetting(body, administration, async () => null));
  if (useless !== null) return useless;
  const { balance: balanceNanos, queueWait: queueWaitMs, budget: parts, ...others } = body;
  const { lowBalance: lowBalanceNanos, joinRetries: joinRetriesMs, ...settings } = others;
  const budget = parts && budgetOf(parts);
  return withoutAbsent({ ...settings, queueWaitMs, balanceNanos, lowBalanceNanos, joinRetriesMs, budget });
}

/** The refusal of a key that could not be used. */
function importsOff(): Refusal {
  return refuse(
    'unknown_url',
    'This gateway takes no keys of other gateways: set server.importedKeys to true in its config, and reload it.',
  );
}

/** Presents keys with their accounts, their budgets, and how many requests each has in progress and were refused. */
async function presentAll(
  some: readonly ApiKey[],
  { keys, running, budgetUse, refusedToday, defaults }: KeyAdministration,
): Promise<readonly PresentedKey[]> {
  const ids = some.map(({ id }) => id);
  const [accounts, budgets, inFlight, refused] = await Promise.all([
    keys.accounts(ids),
    budgetUse(some),
    running.count(ids),
    refusedToday(ids),
  ]);
  return some.map((key) => {
    const { id } = key;
    const use = {
      account: accounts.get(id),
      budget: budgets.get(id),
      inFlight: inFlight.get(id),
      refused: refused.get(id),
    };
    return presentManagedKey(key, use, defaults);
  });
}

/** Drops keys with the value `undefined`: zod keeps an absent optional key as one, which would override the default. */
function withoutAbsent(settings: object): object {
  return JSON.parse(JSON.stringify(settings)) as object;
}

/** The routes under `/admin/keys`: create, import, list, read, change, revoke, rotate and credit keys. */
export function createKeyRoutes(keys: KeyOperations): Router {
  return addRoutes(createRouter(), {
    'GET /': (request) => {
      const query = readWholeQuery(request, keyQuery, 'This list');
      return isRefusal(query) ? query : keys.list(query);
    },
    'POST /': async (request, response) => {
      const body = await readJson(request, response);
      sendAnswer(response, 201, isRefusal(body) ? body : await keys.create(actorOf(request), body));
      return null;
    },
    'POST /import': async (request, response) => {
      const body = await readJson(request, response);
      return isRefusal(body) ? body : keys.import(actorOf(request), body);
    },
    'GET /:id': (request) => keys.get(pathIdOf(request)),
    'PATCH /:id': withBody((by, id, body) => keys.update(by, id, body)),
    'DELETE /:id': (request) => keys.revoke(actorOf(request), pathIdOf(request)),
    'POST /:id/rotate': withBody((by, id, body) => keys.rotate(by, id, body)),
    'POST /:id/credits': withBody((by, id, body) => keys.credit(by, id, body)),
  });
}

/** A route with a JSON body; `work` gets who sent it and the id of the path, too. */
function withBody(work: (by: Actor, id: string, body: unknown) => Promise<object | Refusal>): Route {
  return async (request, response) => {
    const body = await readJson(request, response);
    return isRefusal(body) ? body : work(actorOf(request), pathIdOf(request), body);
  };
}
