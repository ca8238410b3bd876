/** The names under which an operator finds an upstream's settings: variables of the environment, or paths in a config. */
export interface SettingNames {
  readonly url: string;
  readonly apiKey: string;
  readonly allowLinkLocal: string;
  /** The proxy of this upstream alone. */
  readonly proxy: string;
  /** The file with the authorities that may sign its certificate. */
  readonly ca: string;
  /** The files with the certificate of the gateway and its key. */
  readonly clientCertificate: string;
}

/** The proxy on the way to an upstream, as its operator knows it. */
export interface ProxyTarget {
  /** Host and port. */
  readonly address: string;
  readonly isTls: boolean;
  /** The setting or the variable of the environment that names it. */
  readonly name: string;
}

/** An upstream as its operator knows it: where it is, and which settings to correct. Holds no secret. */
export interface CallTarget {
  /** The base URL without user, password and query. */
  readonly base: string;
  /** The names of the query's parameters, whose values may be keys. */
  readonly queryNames: readonly string[];
  /** Whether calls have an API key, or other headers of the config that may hold one. */
  readonly hasKey: boolean;
  readonly names: SettingNames;
  /** The proxy of all its calls; `null` if there is none. */
  readonly proxy: ProxyTarget | null;
}

/** A call, as far as its diagnosis needs it. */
export interface DiagnosedCall {
  readonly method: 'GET' | 'POST';
  /** Below the target's base URL. */
  readonly path: string;
  readonly target: CallTarget;
  /** The caller's own time limit, in milliseconds, if it has one. */
  readonly limitMs?: number;
}

/** What went wrong with a call, and what to do about it: two sentences for the operator, never for clients. */
export interface Diagnosis {
  /** Begins with the method and address of the call, and ends without a full stop. */
  readonly cause: string;
  readonly advice: string;
}

/** Describes the upstream at a base URL to its operator. */
export function describeTarget(
  url: URL,
  hasKey: boolean,
  names: SettingNames,
  proxy: ProxyTarget | null = null,
): CallTarget {
  const base = `${url.protocol}//${url.host}${url.pathname.replace(/\/+$/, '')}`;
  return { base, queryNames: [...new Set(url.searchParams.keys())], hasKey, names, proxy };
}

/** Scheme, host and port of a base URL; the scheme alone where it has no host. */
export function originOf({ protocol, host }: URL): string {
  return host === '' ? protocol : `${protocol}//${host}`;
}

/** The address of a path below the base URL, for logs: the values of its query are left out. */
export function addressOf({ base, queryNames }: CallTarget, path: string): string {
  const [bare = ''] = path.split('?', 1);
  const query = queryNames.map((name) => `${name}=…`).join('&');
  return `${base}${bare}${query === '' ? '' : `?${query}`}`;
}
