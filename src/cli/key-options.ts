import type { Json } from './output.ts';

/** The options of `create` and `update`, as commander names them. */
export interface KeyOptions extends Json {
  readonly name?: string;
  readonly concurrency?: number;
  readonly requestsPerMinute?: number;
  readonly tokensPerMinute?: number;
  readonly tokensPerDay?: number;
  readonly queueWait?: string;
  readonly balance?: string;
  readonly lowBalance?: string;
  readonly model?: readonly string[];
  readonly allowFrom?: readonly string[];
  readonly tags?: readonly string[];
  readonly expires?: string;
  readonly sampling?: string;
  readonly unknownFields?: string;
  readonly responsesDone?: string;
  readonly usageCost?: string;
  readonly chargeComment?: string;
}

/** The options of `list`. */
export interface ListOptions extends Json {
  /** The order; newest first without it. */
  readonly sort?: 'created' | 'name' | 'spent' | 'balance';
}

/** The options of `rotate`. */
export interface RotateOptions extends Json {
  readonly grace: string;
}

/** The options of `credit`. */
export interface CreditOptions extends Json {
  readonly reference?: string;
}

/** The settings of a key as the admin API takes them. */
export function settingsOf(options: KeyOptions): object {
  const { json: _json, model, allowFrom, expires, sampling, unknownFields, ...others } = options;
  const { responsesDone, usageCost, chargeComment, lowBalance: low, ...rest } = others;
  const compatibility = {
    sampling,
    unknownFields,
    responsesDone: truthOf(responsesDone),
    usageCost: truthOf(usageCost),
    chargeComment: truthOf(chargeComment),
  };
  // `all`, `never` and `default`, which `show` prints for keys without a setting of their own, take it away.
  const expiresAt = expires === 'never' ? null : expires;
  const lowBalance = low === 'default' ? null : low;
  const lists = { models: unlessAll(model), allowFrom: unlessAll(allowFrom) };
  return { ...rest, ...lists, expiresAt, lowBalance, compatibility };
}

function truthOf(option: string | undefined): boolean | undefined {
  return option === undefined ? undefined : option === 'true';
}

function unlessAll(list: readonly string[] | undefined): readonly string[] | null | undefined {
  return list?.length === 1 && list[0] === 'all' ? null : list;
}
