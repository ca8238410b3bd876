/** Where a corner case of JSON is put. */
export interface JsonPlace {
  readonly name: string;
  readonly path: '/v1/chat/completions' | '/v1/responses';
  readonly before: string;
  readonly after: string;
  /** Whether a string in this place is the text of the request, which reaches the upstream as it is. */
  readonly isText: boolean;
}

const chat = '/v1/chat/completions';
const messages = '"messages":[{"role":"user","content":"x"}]';

export const jsonPlaces: readonly JsonPlace[] = [
  { name: 'the whole body', path: chat, before: '', after: '', isText: false },
  {
    name: 'content',
    path: chat,
    before: '{"model":"small","messages":[{"role":"user","content":',
    after: '}]}',
    isText: true,
  },
  { name: 'input', path: '/v1/responses', before: '{"model":"small","input":', after: '}', isText: true },
  {
    name: 'metadata',
    path: chat,
    before: `{"model":"small",${messages},"metadata":`,
    after: '}',
    isText: false,
  },
  { name: 'model', path: chat, before: `{${messages},"model":`, after: '}', isText: false },
  {
    name: 'max_tokens',
    path: chat,
    before: `{"model":"small",${messages},"max_tokens":`,
    after: '}',
    isText: false,
  },
];
