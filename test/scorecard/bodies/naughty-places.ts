import type { ServedProcess } from '../../chaos/served-process.ts';

/** A request with a string in one place. */
interface NaughtyRequest {
  readonly url: string;
  /** The request line, and headers but for the length. */
  readonly head: readonly string[];
  readonly body: string;
  /** Content that must have reached the upstream as it is; `null` if the request may be refused. */
  readonly content: string | null;
}

interface To {
  readonly served: ServedProcess;
  readonly key: string;
}

export interface NaughtyPlace {
  readonly name: string;
  readonly ask: (text: string, to: To) => NaughtyRequest;
}

/** Stands in every text that must not be found in log, metrics or database. */
export const canary = 'canary-5e1f0c7a ';

const user = { role: 'user', content: 'x' };

function post(
  url: string,
  path: string,
  secret: string,
  body: object,
  content: string | null = null,
): NaughtyRequest {
  const head = [`POST ${path} HTTP/1.1`, `Authorization: Bearer ${secret}`, 'Content-Type: application/json'];
  return { url, head, body: JSON.stringify(body), content };
}

/** A chat with these fields beside or instead of its own. */
function chat({ served, key }: To, fields: object, content: string | null = null): NaughtyRequest {
  return post(
    served.url,
    '/v1/chat/completions',
    key,
    { model: 'small', messages: [user], ...fields },
    content,
  );
}

const messageWith = (fields: object): object => ({ messages: [{ ...user, ...fields }] });

export const naughtyPlaces: readonly NaughtyPlace[] = [
  { name: 'content', ask: (text, to) => chat(to, messageWith({ content: canary + text }), canary + text) },
  {
    name: 'input',
    ask: (text, { served, key }) =>
      post(served.url, '/v1/responses', key, { model: 'small', input: canary + text }, canary + text),
  },
  {
    name: 'user and metadata',
    ask: (text, to) => chat(to, { user: canary + text, metadata: { [text]: canary + text } }, user.content),
  },
  { name: 'model', ask: (text, to) => chat(to, { model: text }) },
  { name: 'role', ask: (text, to) => chat(to, messageWith({ role: text, content: canary })) },
  { name: 'the name of a field', ask: (text, to) => chat(to, Object.fromEntries([[text, canary]])) },
  {
    name: 'the type of a part',
    ask: (text, to) => chat(to, messageWith({ content: [{ type: text, text: canary }] })),
  },
  {
    name: 'path',
    ask(text, { served, key }) {
      const path = encodeURIComponent(text.toWellFormed()).slice(0, 8_000);
      const head = [`GET /v1/models/${path} HTTP/1.1`, `Authorization: Bearer ${key}`];
      return { url: served.url, head, body: '', content: null };
    },
  },
  {
    name: 'headers',
    ask(text, to) {
      const asked = chat(to, {});
      // Line ends would make another request of it: those are tried with raw requests.
      const value = latin1Of(text.toWellFormed().replaceAll(/[\r\n]/g, ' ')).slice(0, 4_000);
      return { ...asked, head: [...asked.head, `X-Request-Id: ${value}`, `User-Agent: ${value}`] };
    },
  },
  {
    name: 'the name of a key',
    ask: (text, { served }) => post(served.adminUrl, '/admin/keys', served.adminToken, { name: text }),
  },
];

/** The bytes of a text in UTF-8, each as a character. */
function latin1Of(text: string): string {
  return Buffer.from(text).toString('latin1');
}
