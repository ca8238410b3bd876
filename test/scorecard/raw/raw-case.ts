/** What the first answer to a case must be: its status, or one of a class. */
type Wanted = number | 'success' | 'success or closed' | 'client error' | 'no server error';

/** Bytes for a connection of their own, and what must become of them. */
export interface RawCase {
  /** Stands in its first request where the upstream can see it. */
  readonly id: string;
  readonly name: string;
  readonly bytes: string;
  readonly wanted: Wanted;
  /** How many requests the upstream may get of it. */
  readonly upstream: number;
  /** How many answers the client may get of it. */
  readonly answers: number;
}

/** Cases that show one behaviour, which is their title. */
export interface RawTable<Case extends RawCase = RawCase> {
  readonly title: string;
  readonly cases: readonly Case[];
}

/** A request that is served: each case changes something of it. */
export interface Subject {
  readonly name: string;
  readonly isAdmin: boolean;
  readonly method: string;
  readonly path: string;
  /** The headers but for the host and those about the body. */
  readonly lines: readonly string[];
  /** The body with the id of its case; empty for none. */
  readonly body: (id: string) => string;
  /** Whether the upstream gets a request that is served. */
  readonly isPassedOn: boolean;
}

/** The parts of a request that a case may replace. */
export interface Parts {
  readonly method?: string;
  readonly target?: string;
  readonly version?: string;
  readonly host?: readonly string[];
  /** Headers beside those of the subject; the last ones. */
  readonly lines?: readonly string[];
  /** Headers about the body, and the body as it is sent; the default is its length. */
  readonly framing?: (body: string) => { readonly lines: readonly string[]; readonly body: string };
  /** What the whole head is made into before it is sent. */
  readonly edit?: (head: string) => string;
  /** What follows the request on its connection. */
  readonly behind?: string;
}

/** Stands in each request that would only be run if a body or head were read in another way than it was sent. */
export const marker = 'smuggled';

let counted = 0;

/** Makes a case of a subject. */
export function makeCase(
  subject: Subject,
  name: string,
  parts: Parts,
  wanted: Wanted,
  served: Partial<Pick<RawCase, 'upstream' | 'answers'>> = {},
): RawCase {
  const id = `case-${++counted}-`;
  const framed = (parts.framing ?? withLength)(subject.body(id));
  const target = parts.target ?? `${subject.path}?case=${id}`;
  const head = [
    `${parts.method ?? subject.method} ${target} ${parts.version ?? 'HTTP/1.1'}`,
    ...(parts.host ?? ['Host: localhost']),
    ...subject.lines,
    ...framed.lines,
    ...(parts.lines ?? []),
    'Connection: close',
    '',
    '',
  ].join('\r\n');
  const isServed = wanted !== 'client error' && typeof wanted !== 'number';
  return {
    id,
    name: `${subject.name}: ${name}`,
    bytes: (parts.edit ?? ((text) => text))(head) + framed.body + (parts.behind ?? ''),
    wanted,
    upstream: served.upstream ?? (isServed && subject.isPassedOn ? 1 : 0),
    answers: served.answers ?? 1,
  };
}

/** A body with its length, as most requests have it; none without a body. */
function withLength(body: string): { readonly lines: readonly string[]; readonly body: string } {
  return { lines: body === '' ? [] : [`Content-Length: ${body.length}`], body };
}

/** A body in one chunk, behind headers that announce it in some way. */
export function chunked(...lines: readonly string[]): NonNullable<Parts['framing']> {
  return (body) => ({ lines, body: `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n` });
}

/** The subjects of both listeners: `key` and `token` are valid. */
export function subjectsOf(key: string, token: string): readonly Subject[] {
  const json = ['Content-Type: application/json'];
  const withKey = [`Authorization: Bearer ${key}`, ...json];
  const withToken = [`Authorization: Bearer ${token}`, ...json];
  const messages = (content: string) => [{ role: 'user', content }];
  const open = { isAdmin: false, isPassedOn: true, lines: withKey };
  const operators = { isAdmin: true, isPassedOn: false, lines: withToken };
  return [
    {
      ...open,
      name: 'chat',
      method: 'POST',
      path: '/v1/chat/completions',
      body: (id) => JSON.stringify({ model: 'small', messages: messages(id) }),
    },
    {
      ...open,
      name: 'responses',
      method: 'POST',
      path: '/v1/responses',
      body: (id) => JSON.stringify({ model: 'small', input: id }),
    },
    { ...open, name: 'passthrough', method: 'POST', path: '/tokenize', body: (id) => `{"prompt":"${id}"}` },
    { ...open, name: 'models', isPassedOn: false, method: 'GET', path: '/v1/models', body: () => '' },
    { ...operators, name: 'admin status', method: 'GET', path: '/admin/status', body: () => '' },
    {
      ...operators,
      name: 'admin key',
      method: 'POST',
      path: '/admin/keys',
      body: (id) => `{"name":"${id}"}`,
    },
  ];
}

/** A whole request that the subject's server would run, and the upstream would show. */
export function hiddenRequest(subject: Subject): string {
  const body = subject.body(marker);
  const lines = ['Host: localhost', ...subject.lines, ...withLength(body).lines];
  return `${subject.method} ${subject.path}?${marker} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n${body}`;
}
