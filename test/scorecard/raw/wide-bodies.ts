/** The largest body of a request by default, in bytes. */
const maxBytes = 1_048_576;

const chatHead = '{"model":"small","messages":[';
const oneMessage = '{"role":"user","content":"x"}';
const chatEnd = ']}';

/** A body of the largest size that is as costly to read as its form allows. */
export interface WideBody {
  readonly name: string;
  readonly path: '/v1/chat/completions' | '/v1/responses';
  readonly body: string;
}

/** Bodies of 1 MiB of many small values, each of which costs work where it is read. */
export function wideBodies(): readonly WideBody[] {
  const chat = (name: string, body: string): WideBody => ({ name, path: '/v1/chat/completions', body });
  const responses = (name: string, body: string): WideBody => ({ name, path: '/v1/responses', body });
  const inChat = (field: string): string => `{"model":"small","messages":[${oneMessage}],${field}}`;
  return [
    chat(
      'one long text',
      filled(`${chatHead}{"role":"user","content":"`, () => 'word ', `"}${chatEnd}`, ''),
    ),
    chat('4,096 honest messages', `${chatHead}${Array(4_096).fill(oneMessage).join(',')}${chatEnd}`),
    chat(
      '30,000 messages',
      filled(chatHead, () => oneMessage, chatEnd),
    ),
    chat(
      'empty messages',
      filled(chatHead, () => '{}', chatEnd),
    ),
    chat('one message of many parts', filled(`${chatHead}{"role":"user","content":[`, part, `]}${chatEnd}`)),
    chat(
      'messages of 4,000 parts each',
      filled(chatHead, () => `{"role":"user","content":[${Array(4_000).fill(part()).join(',')}]}`, chatEnd),
    ),
    chat(
      'messages of 500 unknown fields each',
      filled(chatHead, () => `{"role":"user","content":"x",${manyFields(500)}}`, chatEnd),
    ),
    chat(
      'parts of 500 unknown fields each',
      filled(
        `${chatHead}{"role":"user","content":[`,
        () => `{"type":"text","text":"x",${manyFields(500)}}`,
        `]}${chatEnd}`,
      ),
    ),
    chat('70,000 unknown fields', inChat(manyFields(70_000))),
    chat(
      'an unknown field of empty arrays',
      filled('{"x":[', () => '[]', `],${inChat('"y":1').slice(1)}`),
    ),
    chat(
      'an unknown field of empty objects',
      filled('{"x":[', () => '{}', `],${inChat('"y":1').slice(1)}`),
    ),
    chat(
      'an unknown field of numbers',
      filled('{"x":[', () => '1e9', `],${inChat('"y":1').slice(1)}`),
    ),
    chat('an unknown object of 100,000 fields', inChat(`"x":{${manyFields(90_000)}}`)),
    chat('many metadata', inChat(`"metadata":{${manyFields(70_000)}}`)),
    chat(
      'a number of a million digits',
      filled('{"max_tokens":1', () => '7', `,${inChat('"y":1').slice(1)}`, ''),
    ),
    chat(
      'a text of escapes',
      filled(`${chatHead}{"role":"user","content":"`, () => '\\u0041', `"}${chatEnd}`, ''),
    ),
    chat(
      'a text of quotes',
      filled(`${chatHead}{"role":"user","content":"`, () => '\\"', `"}${chatEnd}`, ''),
    ),
    chat(
      'wide and not closed',
      filled('{"x":[', () => '[]', ''),
    ),
    chat(
      'messages and not closed',
      filled(chatHead, () => oneMessage, ''),
    ),
    chat(
      'a comma too many at the end',
      filled('{"x":[', () => '1', ',]}'),
    ),
    chat(
      'line feeds and no end',
      filled('{"x":[', () => '1\n', ''),
    ),
    chat(
      'names without quotes at the end',
      filled('{"x":[', () => '{"a":1}', ',{a:1}]}'),
    ),
    chat(
      'arrays nested 60 times',
      filled('{"x":[', () => '['.repeat(60) + ']'.repeat(60), `],${inChat('"y":1').slice(1)}`),
    ),
    chat(
      'nested too deep at the end',
      filled('{"x":[', () => '[]', `,${'['.repeat(70)}`),
    ),
    responses(
      'one long text',
      filled('{"model":"small","input":"', () => 'word ', '"}', ''),
    ),
    responses(
      '30,000 items',
      filled('{"model":"small","input":[', () => oneMessage, ']}'),
    ),
    responses(
      'items of 4,000 parts each',
      filled(
        '{"model":"small","input":[',
        () => `{"role":"user","content":[${Array(4_000).fill('{"type":"input_text","text":""}').join(',')}]}`,
        ']}',
      ),
    ),
    responses('70,000 unknown fields', `{"model":"small","input":"x",${manyFields(70_000)}}`),
    responses(
      'items of 500 unknown fields each',
      filled('{"model":"small","input":[', () => `{"role":"user","content":"x",${manyFields(500)}}`, ']}'),
    ),
  ];
}

function part(): string {
  return '{"type":"text","text":""}';
}

function manyFields(count: number): string {
  return Array.from({ length: count }, (_, index) => `"f${index.toString(36)}":0`).join(',');
}

/** Repeats an entry between two texts until the body has its largest size. */
function filled(begin: string, entry: () => string, end: string, separator = ','): string {
  const one = entry();
  const room = maxBytes - begin.length - end.length;
  const count = Math.max(1, Math.floor((room + separator.length) / (one.length + separator.length)));
  return begin + Array(count).fill(one).join(separator) + end;
}
