import fc from 'fast-check';
import { expect, test } from 'vitest';
import { refusalOf } from '../../../../src/domain/upstreams/failure.ts';
import { classifyStatus } from '../../../../src/protocol/upstream/classify-error.ts';
import { dialects } from '../../../../src/protocol/upstream/dialects.ts';
import { createReader } from '../../../../src/protocol/upstream/read-answer.ts';
import { createSanitiser } from '../../../../src/protocol/upstream/words/sanitise.ts';
import type { Sanitise } from '../../../../src/protocol/upstream/words/sanitise.ts';
import type { Failure } from '../../../../src/protocol/text.ts';
import { errorBody } from '../../../../src/shared/errors.ts';
import { propertyRun } from '../../../support/property-run.ts';
import { errorBodies } from '../../../support/provider-errors.ts';

/** Something that a message must not show: how the message says it, and the parts of it that give it away. */
interface Secret {
  readonly said: string;
  readonly needles: readonly string[];
}

const lower = 'abcdefghijklmnopqrstuvwxyz';
const digits = '0123456789';
const letters = lower + lower.toUpperCase();

const from = (alphabet: string, minLength: number, maxLength = minLength): fc.Arbitrary<string> =>
  fc.string({ unit: fc.constantFrom(...Array.from(alphabet)), minLength, maxLength });
/** Letters and digits with at least one digit, as in any key. */
const token = (min: number, max = min): fc.Arbitrary<string> =>
  fc.tuple(from(letters + digits, min - 1, max - 1), from(digits, 1)).map(([start, end]) => start + end);
const word = from(lower, 3, 9);

/** All parts of a text of some length: none of them may be shown. */
function partsOf(text: string, length = 8): readonly string[] {
  if (text.length <= length) return [text];
  return Array.from({ length: text.length - length + 1 }, (_, at) => text.slice(at, at + length));
}
const whole = (text: string): Secret => ({ said: text, needles: [text] });
const around = (before: string, core: fc.Arbitrary<string>, behind = ''): fc.Arbitrary<Secret> =>
  core.map((secret) => ({ said: before + secret + behind, needles: partsOf(secret) }));

const keys = fc.oneof(
  ...[
    'sk-',
    'sk-proj-',
    'sk-ant-api03-',
    'AIza',
    'gsk_',
    'xai-',
    'hf_',
    'Bearer ',
    'API key: ',
    'x-api-key=',
    '',
  ].map((prefix) => around(prefix, token(24, 56))),
  around('AKIA', from(lower.toUpperCase() + digits, 16)),
  around('eyJ', token(20, 40), '.eyJzdWIiOiIx.c2ln'),
  around('', from('0123456789abcdef', 32, 64)),
  fc
    .tuple(from(letters, 4), from(digits, 4), fc.constantFrom('…', '***', '****************', '...'))
    .map(([start, end, stars]) => ({
      said: `sk-${start}${stars}${end}`,
      needles: [start + stars, stars + end],
    })),
);
const host = fc
  .tuple(word, word, fc.constantFrom('com', 'ai', 'internal', 'svc.cluster.local', 'net', 'io'))
  .map(([first, second, top]) => `${first}.${second}.${top}`);
const ip = fc
  .tuple(...[1, 2, 3, 4].map(() => fc.integer({ min: 10, max: 255 })))
  .map((parts) => parts.join('.'));
const addresses = fc.oneof(
  fc
    .tuple(fc.constantFrom('https', 'http', 'wss', 'grpc'), fc.oneof(host, ip), word, token(8))
    .map(([scheme, at, path, query]) => ({
      said: `${scheme}://${at}:8443/${path}?k=${query}`,
      needles: [at, query, `/${path}`],
    })),
  host.map(whole),
  fc.oneof(host, ip, fc.constant('localhost')).map((at) => whole(`${at}:8000`)),
  ip.map(whole),
  fc.tuple(word, digitsOf(1), digitsOf(4)).map(([name, node, port]) => whole(`${name}-${node}:${port}`)),
  from('0123456789abcdef', 4).map((part) => ({ said: `[2001:db8::${part}]:443`, needles: [`db8::${part}`] })),
  fc.tuple(word, host).map(([name, at]) => ({ said: `${name}@${at}`, needles: [name + '@', at] })),
  fc.tuple(word, word, word).map((parts) => whole(`/${parts.join('/')}.py`)),
  fc.tuple(word, word).map(([a, b]) => ({ said: `C:\\Users\\${a}\\${b}`, needles: [`\\${a}`, `\\${b}`] })),
);
const ids = fc.oneof(
  ...['org-', 'proj_', 'acct_', 'req_', 'user-', 'chatcmpl-'].map((prefix) => around(prefix, token(12, 24))),
  fc.uuid().map(whole),
  digitsOf(12).map(whole),
  around('organization ', token(10, 24)),
  around('request id: ', token(8, 24)),
  digitsOf(12).map((account) => ({
    said: `arn:aws:bedrock:eu-west-1:${account}:model/x`,
    needles: [account, 'bedrock'],
  })),
  fc.tuple(digitsOf(6), word).map(([number, name]) => ({
    said: `projects/${number}/locations/${name}`,
    needles: [number, `/${name}`],
  })),
  fc.tuple(word, digitsOf(3)).map(([name, number]) => ({
    said: `deployment '${name}-${number}'`,
    needles: [`${name}-${number}`],
  })),
);

function digitsOf(length: number): fc.Arbitrary<string> {
  return from(digits, length);
}

const bytesOf = (text: string): readonly string[] =>
  Array.from(Buffer.from(text), (byte) => byte.toString(16).padStart(2, '0'));
const isAscii = (character: string): boolean => character < '\u007f';

/** A text as the forms of a page and of an address, of Python's `bytes`, of C and of HTML have it. */
const asAddress = (text: string): string => encodeURIComponent(text);
const asBytes = (text: string): string =>
  `b'${text.replaceAll(/[^ -~]/gu, (character) =>
    bytesOf(character)
      .map((byte) => `\\x${byte}`)
      .join(''),
  )}'`;
const asOctal = (text: string): string =>
  text.replaceAll(/[^ -~]/gu, (character) =>
    Array.from(Buffer.from(character), (byte) => `\\${byte.toString(8)}`).join(''),
  );
const named = new Map(Object.entries({ é: 'eacute', ö: 'ouml', ñ: 'ntilde', ß: 'szlig', ç: 'ccedil' }));
const asHtml = (text: string): string =>
  text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll(/[^ -~]/gu, (character) => `&${named.get(character) ?? `#${character.codePointAt(0)}`};`);
const asNumbers = (text: string): string =>
  Array.from(text, (character) =>
    isAscii(character) ? character : `&#x${character.codePointAt(0)?.toString(16)};`,
  ).join('');
const asAsciiJson = (text: string): string =>
  JSON.stringify(text).replaceAll(
    /[^ -~]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );

/** How a message may quote a text of the request. */
const quotations: readonly ((text: string) => string)[] = [
  (text) => text,
  (text) => text.toUpperCase().replaceAll('SS', 'ß'),
  (text) => text.replaceAll(' ', '\n  '),
  (text) => JSON.stringify(text),
  (text) => JSON.stringify(JSON.stringify(text)),
  (text) => JSON.stringify({ error: JSON.stringify({ input: JSON.stringify([text]) }) }),
  (text) => `"${text.slice(0, Math.ceil(text.length / 2))}`,
  (text) => `'${text.slice(0, -1)}…'`,
  (text) => `q=${asAddress(text)}&n=1`,
  (text) => `q=${asAddress(asAddress(text))}`,
  (text) => `q=${asAddress(text).replaceAll('%20', '+').toLowerCase()}`,
  asBytes,
  (text) => JSON.stringify(asBytes(text)),
  asOctal,
  asHtml,
  (text) => asHtml(asHtml(text)),
  (text) => `&quot;${asNumbers(text)}&quot;`,
  (text) => JSON.stringify(`<p>${asHtml(text)}</p>`).replaceAll('&', String.raw`\u0026`),
  asAsciiJson,
  (text) => JSON.stringify(asAsciiJson(text)),
  (text) => `type=string_type, input_value='${cutMiddle(text)}', input_type=str]`,
  (text) => `got '${cutMiddle(text)}'`,
];

/** How a message may write a key, an address or an id. */
const writings: readonly ((text: string) => string)[] = [
  (text) => text,
  asAddress,
  (text) => asAddress(asAddress(text)),
  (text) => text.replaceAll('/', String.raw`\/`),
  (text) => text.replaceAll(/[/'`=]/g, (sign) => `&#x${sign.charCodeAt(0).toString(16)};`),
  (text) => text.replaceAll(/[/'=&+]/g, (sign) => String.raw`\u00` + sign.charCodeAt(0).toString(16)),
];

/** Reverses them. */
function unwritten(text: string): string {
  return text
    .replaceAll(String.raw`\/`, '/')
    .replaceAll(/%(?:25)*([0-9a-f]{2})|&#x([0-9a-f]{2});|\\u00([0-9a-f]{2})/gi, (_, ...found: string[]) =>
      String.fromCharCode(Number.parseInt(found.slice(0, 3).find(Boolean) ?? '', 16)),
    );
}

/** The first 25 characters and the last 24, as Pydantic shows what it got. */
function cutMiddle(text: string): string {
  return text.length <= 50 ? text : `${text.slice(0, 25)}...${text.slice(-24)}`;
}

/** A text reduced to what tells it, as a reader would who knows the encodings. */
function readable(text: string): string {
  const escapes = /\\+x([0-9a-f]{2})|\\+([0-3][0-7]{2})|%(?:25)*([0-9a-f]{2})/gi;
  const bytes = text.replaceAll(escapes, (_, hex?: string, octal?: string, percent?: string) =>
    String.fromCharCode(
      octal === undefined ? Number.parseInt(hex ?? percent ?? '', 16) : Number.parseInt(octal, 8),
    ),
  );
  const utf8 = bytes.replaceAll(/[\u00c2-\u00f4][\u0080-\u00bf]+/g, (run) =>
    Buffer.from(run, 'latin1').toString(),
  );
  return utf8
    .replaceAll(/\\+u([0-9a-f]{4})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
    .replaceAll(/&(?:amp;)*#(?:x([0-9a-f]+)|(\d+));/gi, (_, hex?: string, decimal?: string) =>
      String.fromCodePoint(Number.parseInt(hex ?? decimal ?? '', hex === undefined ? 10 : 16)),
    )
    .replaceAll(/&(?:amp;)*([a-z])(?:acute|uml|tilde|cedil);/gi, '$1')
    .replaceAll(/&(?:amp;)*szlig;/gi, 'ß')
    .normalize('NFKD')
    .toLowerCase()
    .replaceAll(/[^a-z0-9ß]/g, '');
}

/** Words, some with letters that every encoding writes in another way, and pieces of code with few letters. */
const spokenWord = fc.oneof(
  { weight: 6, arbitrary: word },
  { weight: 2, arbitrary: from(`${lower}éöñßç`, 3, 9) },
  { weight: 1, arbitrary: from(`${lower.slice(0, 6)}{}();=+<>&%'"`, 3, 9) },
);

/** A request, and parts of it as a message quotes them; a longer one may be quoted in part. */
const prompts = fc
  .tuple(
    fc
      .array(spokenWord, { minLength: 1, maxLength: 40 })
      .map((spoken) => spoken.join(' '))
      // A few letters are found in quotation marks alone, unless there are such marks among them.
      .filter((text) => readable(text).length >= (/["']/.test(text) ? 4 : 1)),
    fc.nat(quotations.length - 1),
  )
  .map(([text, quotation]) => {
    const said = quotations[quotation]?.(text) ?? text;
    const plain = readable(text);
    // A quotation of less than sixteen letters without its marks is a phrase; a short request is quoted as a whole.
    const quoted = plain.length < 16 ? `"${text}"` : said;
    return { text, secret: { said: quoted, needles: plain.length < 16 ? [quoted] : partsOf(plain, 16) } };
  });

const openings = ['max_tokens is too large: 99999.', 'CUDA out of memory.', 'Bad request:', 'No:'];
const joints = [' ', ', ', ' at ', ' (', ') and ', ': ', ' of ', '; '];

const messages = fc.tuple(
  fc.constantFrom(...openings),
  prompts,
  fc.array(
    fc.tuple(fc.constantFrom(...joints), fc.oneof(keys, addresses, ids), fc.nat(2 * writings.length - 1)),
    { minLength: 1, maxLength: 4 },
  ),
  fc.boolean(),
  token(24, 40),
  token(24, 40),
);

type Reading = (message: string, sanitise: Sanitise) => Failure;

const readIn =
  (dialect: keyof typeof dialects, contentType: string, write: (message: string) => string): Reading =>
  (message, sanitise) => {
    const terms = {
      contentType,
      streamAsked: true,
      finishReason: 'required',
      thoughtTag: null,
      sentTokens: 100,
      isFast: true,
      sanitise,
    } as const;
    const reader = createReader(dialects[dialect], terms);
    const { ending } = reader.push(Buffer.from(write(message)));
    const last = ending ?? reader.end().ending;
    if (last?.kind !== 'failed') throw new Error('the error was not read');
    return last.failure;
  };
const sse = 'text/event-stream';
const json = 'application/json';
const event = (name: string, data: object): string => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;

/** Every way in which an upstream's words come in. */
const readings: readonly Reading[] = [
  ...Object.values(errorBodies).flatMap((write) =>
    [400, 401, 404, 500].map(
      (status): Reading =>
        (message, sanitise) =>
          classifyStatus(status, write(message, 'BadRequestError'), null, sanitise),
    ),
  ),
  (message, sanitise) => classifyStatus(400, errorBodies['OpenAI']?.('x', message) ?? '', null, sanitise),
  readIn('chat', sse, (message) => `data: ${JSON.stringify({ error: { message, code: 400 } })}\n\n`),
  readIn('chat', sse, (message) => `data: ${JSON.stringify({ object: 'error', message, code: 400 })}\n\n`),
  readIn('chat', json, (message) => JSON.stringify({ error: { message, type: 'invalid_request_error' } })),
  readIn('chat', sse, (message) => `error: ${JSON.stringify({ message, code: 400 })}\n\n`),
  readIn('responses', sse, (message) => event('error', { type: 'error', code: 'invalid_request', message })),
  readIn('responses', sse, (message) =>
    event('response.failed', { response: { status: 'failed', error: { code: 'bad_request', message } } }),
  ),
  readIn('anthropic', sse, (message) =>
    event('error', { error: { type: 'invalid_request_error', message } }),
  ),
  readIn('anthropic', json, (message) =>
    JSON.stringify({ error: { type: 'invalid_request_error', message } }),
  ),
  readIn(
    'gemini',
    sse,
    (message) => `data: ${JSON.stringify({ error: { status: 'INVALID_ARGUMENT', message } })}\n\n`,
  ),
  readIn('gemini', json, (message) => JSON.stringify([{ error: { status: 'INVALID_ARGUMENT', message } }])),
];

/** All words of an upstream that a failure holds, for the operator and for the client. */
function shownOf(failure: Failure): string {
  const { message, upstream } = errorBody(refusalOf(failure));
  const words = [failure.upstreamError, upstream].flatMap((said) => Object.values(said ?? {}));
  return [failure.cause, failure.detail, message, words.join('\n')].join('\n');
}

test('no key, address, id or text of the request is left of generated messages, in any reading', () => {
  const run = propertyRun(250);
  let shownMessages = 0;
  fc.assert(
    fc.property(
      messages,
      fc.nat(readings.length - 1),
      ([opening, { text, secret: quoted }, more, first, own, client], at) => {
        const sanitise = createSanitiser({
          turns: [{ role: 'user', text }],
          clientKey: `Bearer old.${client}`,
          upstream: () => ({ keys: [own], hosts: ['inference.mine:9000'] }),
          names: ['tiny'],
        });
        const known = [own, client].map((key) => ({
          said: `using ${key} at inference.mine:9000`,
          needles: [...partsOf(key), 'mine:9'],
        }));
        const parts = [
          ...more.map(([joint, secret, writing]) => ({
            ...secret,
            said: joint + (writings[writing]?.(secret.said) ?? secret.said),
          })),
          ...known,
        ];
        const ordered = first ? [quoted, ...parts] : [...parts, quoted];
        const message = [opening, ...ordered.map(({ said }) => said)].join(' ');
        const failure = readings[at]?.(message, sanitise);
        if (failure === undefined) throw new Error('no such reading');
        if (failure.upstreamError?.message?.startsWith(opening)) shownMessages++;
        const shown = shownOf(failure);
        const plain = readable(shown.replaceAll(/\[[a-z]+\]/g, ' 0 '));
        const leaks = [quoted, ...parts].flatMap(({ needles }) =>
          needles.filter((needle) => shown.includes(needle) || unwritten(shown).includes(needle)),
        );
        // A text of the request must not be left with other blanks or capitals either.
        const long = quoted.needles.length > 1 ? quoted.needles : [];
        const found = [...leaks, ...long.filter((needle) => plain.includes(needle))];
        expect({ shown, found }).toEqual({ shown, found: [] });
      },
    ),
    run,
  );
  // Most of the messages must be shown, or nothing was tested.
  expect(shownMessages / run.numRuns).toBeGreaterThan(0.6);
}, 300_000);
