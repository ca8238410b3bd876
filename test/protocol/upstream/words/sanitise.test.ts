import { describe, expect, test } from 'vitest';
import { createSanitiser, holdsSecret } from '../../../../src/protocol/upstream/words/sanitise.ts';

const prompt = 'Please summarise the merger of Acme and Globex.\nSay "nothing" to the Ünïon.';

function sanitise(
  message: string,
  turns: readonly string[] = [prompt, 'hunter2', '你好世界今天好'],
): string | null {
  return createSanitiser({
    turns: turns.map((text) => ({ role: 'user', text })),
    clientKey: 'Bearer old-client/key!',
    upstream: () => ({ keys: ['odd Key!77', 'my-own-local-key-1'], hosts: ['vllm:8000', 'inference.mine'] }),
    names: ['gpt-4o-2024-08-06', 'accounts/fireworks/models/llama-v3', '10.0.0.9'],
  })(message);
}

test.each<[string, string, string, boolean]>([
  ['it as a whole', 'no ab!cd! here', 'ab!cd!', true],
  ['the word behind its scheme', 'no ab!cd! here', 'Bearer ab!cd!', true],
  ['a long part of it', 'no ABCDEFGHIJKL here', 'xabc-def-ghi-jklx', true],
  ['a shorter part of it', 'no ABCDEFGHIJK here', 'xabc-def-ghi-jklx', false],
  ['one that is too short', 'no ab!cd here', 'ab!cd', false],
  ['nothing of it', 'no', 'ab!cd!', false],
])('a text with %s holds a secret or not', (_what, text, secret, holds) => {
  expect(holdsSecret(text, secret)).toBe(holds);
});

describe('what an upstream says', () => {
  test.each([
    'max_tokens is too large: 99999. This model supports at most 4096',
    'CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 23.69 GiB total capacity)',
    "This model's maximum context length is 8192 tokens. However, you requested 12345678 tokens (9 in the messages).",
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
    'The model `gpt-9` does not exist or you do not have access to it.',
    "Invalid 'messages[0].content': string too long, role 'user'.",
    'ContextWindowExceededError: litellm.BadRequestError: AnthropicException - response_format.json_schema',
    'meta-llama/Llama-3.1-8B-Instruct, claude-3-5-sonnet-20241022, Qwen/Qwen2.5-Coder-32B-Instruct-AWQ, text/event-stream',
    'gpt-4o-2024-08-06 or accounts/fireworks/models/llama-v3 at 10.0.0.9 is overloaded',
    'Use /v1/chat/completions. API key is not valid. Bearer token required; the account must be verified.',
    'tokens: 4096, limit:4096, max_tokens=5, v1.2.3 at 12:30:45 on 2026-11-22, 50% of 0.25',
    'The project was archived and the organization is over its quota, in 2.5s.',
    'The project stopped, and the project Acme as well, of organization: acme.',
    'Check your key. abc9 is no part of it, and neither is key model-not-found.',
    'A token 4096, an account 4096 and the id ab12 count something.',
    'the key is is is is is abc9',
  ])('is kept where it is of use: %s', (message) => {
    expect(sanitise(message, [])).toBe(message);
  });

  test.each([
    [
      'Incorrect API key provided: sk-proj-abc***********wxyz. See https://x.example/y?z=1.',
      'Incorrect API key provided: [key]. See [url].',
    ],
    [
      'keys sk-ant-api03-x AIzaSyD-abc gsk_12 xai-9 AKIAIOSFODNN7EXAMPLE hf_x',
      'keys [key] [key] [key] [key] [key] [key]',
    ],
    ['jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIx.abc, Bearer abcdefghijklmnopqrs', 'jwt [key], Bearer [key]'],
    [
      'sk-…abcd and key ending in wxyz; api_key=zzzz; password: correct',
      '[key] and key ending in [key]; api_key=[key]; password: [key]',
    ],
    ['deadbeefdeadbeefdeadbeef QWxhZGRpbjpvcGVuIHNlc2FtZQ9 aaaaaaaaaaaaaaaaaaaaaaaa', '[key] [key] [key]'],
    // Six changes of kind in twenty characters are too many for a name, and five in the second are not.
    ['mix abc1def2gh-ijk3lmnop or abc1def2gh-ijklmnop3', 'mix [key] or abc1def2gh-ijklmnop3'],
    ['the odd Key!77 old-client/key! local-key-1 mylocalkey', 'the [key] [key] local-key-1 mylocalkey'],
    ['own-local-key-1', '[key]'],
    ['my own local key 1 given', '[key] given'],
    ['the key is is is is abc9', 'the key is is is is [key]'],
    ['key 12345, account number: 4096', 'key [key], account number: [id]'],
    ['in:org-abcdef to ... redis:6379', '[id] to ... [host]'],
    ['at vllm:8000/v1/x/y', 'at [path]'],
    [
      'at vllm:8000, inference.mine, api.foo.com/v1/x, 10.2.3.4:80, [2001:db8::1]:443, db-1:5432',
      'at [host], [host], [host], [host], [[host]]:443, [host]',
    ],
    [
      'connect to redis:6379 or localhost:11434 or a.b-1.svc.cluster.local',
      'connect to [host] or [host] or [host]',
    ],
    ['{"api_key":"abc","organization_id":"acme"}', '{"api_key":"[key]","organization_id":"[id]"}'],
    ['Organization: Acme, to gpu-node.lab', 'Organization: [id], to [host]'],
    ['joe.doe+x@example.com', '[email]'],
    [
      'File "/usr/lib/x/engine.py", line 10; C:\\Users\\joe\\x ~/.ssh/id src/app/x.py',
      'File "[path]", line 10; [path] [path] [path]',
    ],
    [
      'in organization org-AbCdEf12 project proj_123456 of account 12345 (123456789012)',
      'in organization [id] project [id] of account [id] ([id])',
    ],
    [
      'request id: 9f8e7d6c, req_011CSHoEeq, 123e4567-e89b-12d3-a456-426614174000',
      'request id: [id], [id], [id]',
    ],
    [
      "deployment 'my-gpt4' of arn:aws:bedrock:us-east-1::model/x or projects/12/locations/us",
      "deployment '[id]' of [id] or [id]",
    ],
    ['account:12345 user_id:42 api_key:abc9 tokens:12345', '[id] [id] [key] tokens:12345'],
    ['Ray ID: 8a9b0c1d2e3f4a5b, Request id: req-abc', 'Ray ID: [id], Request id: [id]'],
    [
      'getaddrinfo ENOTFOUND inference, connect ECONNREFUSED ::1:8000',
      'getaddrinfo ENOTFOUND [host], connect ECONNREFUSED [host]',
    ],
    ['C:\\My Files\\secret.txt abcd**efgh', '[path] [path] [key]'],
  ])('hides secrets: %s', (message, shown) => {
    expect(sanitise(message, [])).toBe(shown);
  });

  test.each([
    ['as it is', 'bad: summarise the merger of Acme!', 'bad: [text]!'],
    ['in capitals and other white space', 'bad: SUMMARISE\n  THE MERGER   of acme', 'bad: [text]'],
    ['in braces', 'bad: {summarise} {the} merger {of} acme!', 'bad: {[text]!'],
    ['escaped as JSON', String.raw`it: Globex.\nSay \"nothing\" to the \u00dcn\u00efon`, 'it: [text]'],
    ['escaped twice', String.raw`it: Globex.\\nSay \\\"nothing\\\" to the \\u00dcn\\u00efon`, 'it: [text]'],
    ['escaped as HTML', 'it: Globex. Say &quot;nothing&quot; to the &#220;n&#xef;on', 'it: [text]'],
    ['without its accents', 'it: Globex say nothing to the Union', 'it: [text]'],
    ['cut off in quotation marks', "bad: 'Please sum", "bad: '[text]"],
    ['in parts', 'bad: "Please summarise the merger ... nothing to the Ünïon."', 'bad: "[text]."'],
    ['short, in quotation marks', 'bad: "hunter2", Acme', 'bad: "[text]", Acme'],
    ['short, as a whole turn', 'bad: HUNTER2 given', 'bad: [text] given'],
    ['short, as a whole turn at the beginning', 'hunter2 given', '[text] given'],
    ['short, as a whole turn at the end', 'bad: hunter2', 'bad: [text]'],
    ['a few ideographs', 'bad: 好世界今天好了', 'bad: [text]'],
    [
      'as an address has it',
      'for /x?q=Say%20%22nothing%22+to%20the%20%C3%9Cn%c3%afon&n=1',
      'for [path]=[text]&n=1',
    ],
    ['as an address within one', 'q=say%2520%2522nothing%2522%2520to%2520the%2520%25C3%259Cn', 'q=[text]'],
    ['as bytes in Python', String.raw`b'Globex.\nSay "nothing" to the \xc3\x9cn\xc3\xafon'`, "b'[text]'"],
    ['as bytes in C', String.raw`it: nothing" to the \303\234n\303\257on`, 'it: [text]'],
    ['as Latin-1', String.raw`it: nothing" to the \xdcn\xefon`, 'it: [text]'],
    ['with code points of Python and Rust', String.raw`it: nothing to the \U000000dcn\u{ef}on`, 'it: [text]'],
    ['with named entities', 'it: nothing&quot; to the&nbsp;&Uuml;n&iuml;on', 'it: [text]'],
    ['as HTML in HTML', 'it: nothing&amp;quot; to the &amp;Uuml;n&amp;#xef;on', 'it: [text]'],
    ['as HTML in JSON', String.raw`it: nothing\u0026quot; to the \u0026Uuml;n\u0026iuml;on`, 'it: [text]'],
    [
      'short, in marks that are escaped',
      'bad: &quot;Acme&quot;, and afterwards %22Globex%22, and afterwards &#x27;Acme&#39;',
      'bad: &quot;[text]&quot;, and afterwards %22[text]%22, and afterwards &#x27;[text]&#39;',
    ],
    ['short, as bytes', "bad: b'Acme'", "bad: b'[text]'"],
    ['in short pieces, its middle left out', "got 'Please s...e Ünïon.'", "got '[text].'"],
    [
      'as a value that Pydantic got',
      "string_type, input_value='{[(;;)]} !=...<<x>> {y}', input_type=str]",
      'string_type, input_value=[text], input_type=str]',
    ],
    [
      'as an object that Pydantic got',
      "[type=missing, input_value={'a': ['b",
      '[type=missing, input_value=[text]',
    ],
  ])('hides the request, quoted %s', (_how, message, shown) => {
    expect(sanitise(message)).toBe(shown);
  });

  test('keeps numbers and constants that Pydantic got', () => {
    const said = 'Input should be greater than 0 [type=greater_than, input_value=-1, input_type=int]';
    expect([sanitise(said), sanitise('[input_value=None, input_type=NoneType]')]).toEqual([
      said,
      '[input_value=None, input_type=NoneType]',
    ]);
  });

  test.each([
    ['at https%3A%2F%2Fapi.foo.com%3A8443%2Fv1 for joe%40example.com', 'at [url] for [email]'],
    [String.raw`at {"url":"https:\/\/api.foo.com\/v1"}`, 'at {"url":"[path]"}'],
    [String.raw`as \u0026#x2F;usr\u0026#x2F;lib`, 'as [path]'],
    ['File &quot;&#x2F;usr&#x2F;lib&#x2F;engine.py&quot;', 'File &quot;[path]&quot;'],
    ['the odd%20Key%2177 and odd&nbsp;Key&excl;77, key%3Dsk%2Dabc123', 'the [key] and [key], key%3D[key]'],
  ])('hides secrets that are escaped: %s', (message, shown) => {
    expect(sanitise(message, [])).toBe(shown);
  });

  test.each(['x', 'a', 'z', 'A', 'Z', '0', '9'])(
    'hides even one letter or digit, if that is the whole request and in quotation marks: %s',
    (asked) => {
      expect(sanitise(`invalid character '${asked}' in the box`, [asked])).toBe(
        "invalid character '[text]' in the box",
      );
    },
  );

  test('keeps phrases that a request shares by chance, and names of fields that it mentions', () => {
    const asked = "My model says that max_tokens is too large. It supports the role 'user'.";
    expect(sanitise("'max_tokens' is too big for the role 'user'", [asked])).toBe(
      "'max_tokens' is too big for the role 'user'",
    );
  });

  test('keeps a short turn within a longer word', () => {
    expect(sanitise('bad: xhunter2x')).toBe('bad: xhunter2x');
    expect(sanitise('xhunter2 given')).toBe('xhunter2 given');
  });

  test('shows 400 characters of a text, and an ellipsis in place of the last if there are more', () => {
    const text = `${'a '.repeat(199)}ab`;
    expect([sanitise(text, []), sanitise(`${text}c`, [])]).toEqual([text, `${text.slice(0, 399)}…`]);
  });

  test('reads 4,096 characters of a text, and drops the last word of a longer one within 64 of the end', () => {
    const textOf = (blanks: number, word: string): string => `no${' '.repeat(blanks)}${word}`;
    expect([sanitise(textOf(4_091, 'way'), []), sanitise(textOf(4_092, 'way'), [])]).toEqual([
      'no way',
      null,
    ]);
    const word = 'a'.repeat(99);
    expect([sanitise(textOf(4_031, word), []), sanitise(textOf(4_032, word), [])]).toEqual(['no', null]);
  });

  test('shows a long text from its beginning', () => {
    expect(sanitise(`first ${'b '.repeat(3_000)}`, [])).toMatch(/^first b b /);
  });

  test('drops the last word of a long text, which may be the beginning of a key', () => {
    const secret = 'sk-'.padEnd(60, 'a1');
    const text = `${secret} `.repeat(200);
    expect(sanitise(text, [])).toMatch(/^(\[key\] ?)*…?$/);
    expect(sanitise('a'.repeat(10_000), [])).toBeNull();
  });

  test('shows nothing if the request is too long to be searched, or folds to too many letters', () => {
    expect(sanitise('no', ['x'.repeat(2_097_153)])).toBeNull();
    // This ligature folds to eighteen letters.
    expect(sanitise('no', ['\ufdfa'.repeat(400_000)])).toBeNull();
    expect(sanitise('no', ['\ufdfa'.repeat(200_000)])).toBe('no');
  });

  test.each([
    [
      'Hangul',
      '\ud55c\uae00\uc740 \uae00\uc790\ub2e4',
      '\u1112\u1161\u11ab\u1100\u1173\u11af\u110b\u1173\u11ab \uae00\uc790\ub2e4',
    ],
    ['ideographs of other planes', '\u{20000}\u{2f800}\u{30000}', '\u{20000}\u4e3d\u{30000}'],
    ['letters of mathematics', 'mathematics \u{1d400}\u{1d401}', 'MATHEMATICS AB'],
    ['emoji beside letters', 'so \u{1f600} it is, all of it', 'so it is, \u{e0041}\u{1f601}all of it'],
  ])('compares texts with %s', (_script, asked, said) => {
    expect(sanitise(`bad: "${said}"`, [asked])).toBe('bad: "[text]"');
  });

  test('reads the text of a request once, however many upstreams answer with errors', () => {
    let reads = 0;
    const turns = [
      {
        role: 'user' as const,
        get text() {
          reads++;
          return prompt;
        },
      },
    ];
    const tell = () =>
      createSanitiser({ turns, clientKey: '', upstream: () => ({ keys: [], hosts: [] }), names: [] })(
        'bad: summarise the merger of Acme!',
      );
    expect(tell()).toBe('bad: [text]!');
    const once = reads;
    expect([tell(), tell()]).toEqual(['bad: [text]!', 'bad: [text]!']);
    expect(reads).toBe(once);
  });
});
