/**
 * Corner cases of JSON by its grammar (RFC 8259). `y`: JSON, must not be refused as broken; `n`: no JSON, must be refused;
 * `i`: a reader may do either.
 */
export interface JsonCase {
  readonly kind: 'y' | 'n' | 'i';
  readonly name: string;
  readonly bytes: Buffer;
}

type Kind = JsonCase['kind'];

/** Cases of one kind that are text: the name is the text. */
function texts(kind: Kind, what: string, values: readonly string[]): readonly JsonCase[] {
  return values.map((value) => ({
    kind,
    name: `${what}: ${JSON.stringify(value).slice(0, 60)}`,
    bytes: Buffer.from(value),
  }));
}

/** Cases of one kind whose bytes stand within a string. */
function stringsOf(kind: Kind, what: string, values: readonly (readonly number[])[]): readonly JsonCase[] {
  return values.map((value) => ({
    kind,
    name: `${what}: ${Buffer.from(value).toString('hex')}`,
    bytes: Buffer.from([0x22, 0x61, ...value, 0x62, 0x22]),
  }));
}

const spread = (text: string): readonly string[] => text.split(' ');
const letters = 'abcdefghijklmnopqrstuvwxyz'.split('');
const codes = (from: number, to: number): readonly number[] =>
  Array.from({ length: to - from + 1 }, (_, index) => from + index);
const hex = (code: number): string => code.toString(16).padStart(4, '0');

/** White space of other standards, and invisible characters: none of it is white space of JSON. */
const otherSpaces = [
  0x0b, 0x0c, 0x85, 0xa0, 0xad, 0x1680, 0x180e, 0x2000, 0x200b, 0x200d, 0x200e, 0x2028, 0x2029, 0x202e,
  0x202f, 0x205f, 0x2060, 0x3000,
];

const numbers: readonly JsonCase[] = [
  ...texts(
    'y',
    'a number',
    spread(
      '0 -0 1 -1 10 0.1 -0.1 1.0 0.0 -0.0 0e0 0E0 0e+0 0e-0 1e5 1E5 1e+5 1E+5 1e-5 1E-5 1.5e300 123.456e78 ' +
        '9007199254740991 9007199254740992 9007199254740993 -9007199254740993 9223372036854775807 18446744073709551616 ' +
        '123456789012345678901234567890 1e-400 -1e-400 0.30000000000000004 4.9e-324 2.2250738585072014e-308',
    ),
  ),
  ...texts('i', 'a number that no double holds', ['1e400', '-1e400', '1e999999999', `1${'0'.repeat(400)}`]),
  ...texts('y', 'a long number', [`0.${'1'.repeat(1_000)}`, '9'.repeat(300), `1e${'0'.repeat(500)}1`]),
  ...texts(
    'n',
    'no number',
    spread(
      '01 -01 00 -00 0123 +1 +0 .5 -.5 5. -5. 1.e1 1. 1e 1E 1e+ 1e- 1e1.5 0x10 0X1 0b1 0o7 1_000 --1 - -a 1n 1f 1L 1d ' +
        '1e1e1 1.2.3 1..2 -Infinity Infinity NaN -NaN +Infinity Inf ∞ ١ １ ½ ² 1e1,5 0.1.1 1-1 1+1 0e 0e+ -e1 e1 0x ' +
        '$1 1$ 1% 1,000 #1 1/2 ++1 -+1 1e++1 1E-+1',
    ),
  ),
  ...texts('n', 'a number in pieces', ['- 1', '1 000', '1 .5', '1. 5', '1 e5', '1e 5', '1e5 6', '0 0']),
];

const strings: readonly JsonCase[] = [
  ...texts('y', 'a string', [
    '""',
    '"a"',
    '" "',
    '"\u007f"',
    '"é"',
    '"€"',
    '"😀"',
    '"\u2028\u2029"',
    '"\ufeff"',
  ]),
  ...texts(
    'y',
    'an escape',
    '"\\/bfnrt'.split('').map((letter) => `"\\${letter}"`),
  ),
  ...texts(
    'y',
    'an escaped character',
    [...codes(0, 0x1f), 0x22, 0x5c, 0x7f, 0x80, 0xad, 0x200b, 0x2028, 0xfeff, 0xfffe, 0xffff].map(
      (code) => `"\\u${hex(code)}"`,
    ),
  ),
  ...texts('y', 'a pair of surrogates', [
    '"\\ud83d\\ude00"',
    '"\\uD83D\\uDE00"',
    '"\\udbff\\udfff"',
    '"\\ud800\\udc00"',
  ]),
  ...texts('y', 'a noncharacter', ['"\ufffe"', '"\uffff"', '"\u{1fffe}"', '"\u{10ffff}"', '"\ufdd0"']),
  ...texts('i', 'a lone surrogate', [
    '"\\ud800"',
    '"\\udc00"',
    '"\\ude00\\ud83d"',
    '"\\ud83d x"',
    '"x\\ud83d"',
    '"\\ud83d\\u0061"',
    '"\\ud83d\\ud83d\\ude00"',
    '"\\udfff\\udfff"',
  ]),
  ...texts(
    'n',
    'a raw control character',
    [...codes(0, 0x1f)].map((code) => `"a${String.fromCharCode(code)}b"`),
  ),
  ...texts(
    'n',
    'an unknown escape',
    [...letters.filter((letter) => !'bfnrtu'.includes(letter)), ..."0123'`UN {x".split('')].map(
      (letter) => `"\\${letter}"`,
    ),
  ),
  ...texts('n', 'a cut escape', [
    '"\\"',
    '"\\u"',
    '"\\u1"',
    '"\\u12"',
    '"\\u123"',
    '"\\u12g4"',
    '"\\u{41}"',
    '"\\u+041"',
    '"\\u 041"',
  ]),
  ...texts('n', 'other quotes', [
    "'a'",
    '`a`',
    '“a”',
    '«a»',
    '"a',
    'a"',
    '"',
    "'",
    '"a\'',
    '"""',
    '"a""b"',
    '"a" "b"',
    'a',
  ]),
];

const encodings: readonly JsonCase[] = [
  ...stringsOf('y', 'UTF-8', [
    [0xc2, 0x80],
    [0xdf, 0xbf],
    [0xe0, 0xa0, 0x80],
    [0xef, 0xbf, 0xbd],
    [0xf0, 0x90, 0x80, 0x80],
    [0xf4, 0x8f, 0xbf, 0xbf],
  ]),
  ...stringsOf('n', 'a byte that begins nothing', [
    [0x80],
    [0xbf],
    [0xf8],
    [0xfc],
    [0xfe],
    [0xff],
    [0xf5],
    [0xff, 0xfe],
  ]),
  ...stringsOf('n', 'a cut character', [
    [0xc3],
    [0xe2],
    [0xe2, 0x82],
    [0xf0],
    [0xf0, 0x9f],
    [0xf0, 0x9f, 0x98],
    [0xc3, 0x28],
  ]),
  ...stringsOf('n', 'an overlong form', [
    [0xc0, 0x80],
    [0xc0, 0xaf],
    [0xc1, 0xbf],
    [0xe0, 0x80, 0x80],
    [0xe0, 0x9f, 0xbf],
    [0xf0, 0x80, 0x80, 0xaf],
    [0xf0, 0x8f, 0xbf, 0xbf],
    [0xc0, 0xa2],
  ]),
  ...stringsOf('n', 'a surrogate in UTF-8', [
    [0xed, 0xa0, 0x80],
    [0xed, 0xbf, 0xbf],
    [0xed, 0xa0, 0xbd, 0xed, 0xb8, 0x80],
  ]),
  ...stringsOf('n', 'above the last character', [
    [0xf4, 0x90, 0x80, 0x80],
    [0xf7, 0xbf, 0xbf, 0xbf],
    [0xf8, 0x88, 0x80, 0x80, 0x80],
  ]),
  ...stringsOf('n', 'another encoding', [[0xe9], [0xe4, 0xf6, 0xfc], [0x93, 0x61, 0x94], [0xa4]]),
  ...['"a"', '{"a":1}', '[]', '7'].flatMap((text): readonly JsonCase[] => [
    { kind: 'n', name: `UTF-16, little end first: ${text}`, bytes: Buffer.from(text, 'utf16le') },
    { kind: 'n', name: `UTF-16 with a mark: ${text}`, bytes: Buffer.from(`\ufeff${text}`, 'utf16le') },
    { kind: 'n', name: `UTF-16, big end first: ${text}`, bytes: Buffer.from(text, 'utf16le').swap16() },
    {
      kind: 'n',
      name: `UTF-16 with a mark, big end first: ${text}`,
      bytes: Buffer.from(`\ufeff${text}`, 'utf16le').swap16(),
    },
    { kind: 'n', name: `UTF-32: ${text}`, bytes: Buffer.from(text.replaceAll(/./g, '$&\0\0\0')) },
    { kind: 'i', name: `a byte order mark: ${text}`, bytes: Buffer.from(`\ufeff${text}`) },
    { kind: 'n', name: `a mark behind: ${text}`, bytes: Buffer.from(`${text}\ufeff`) },
    { kind: 'n', name: `two marks: ${text}`, bytes: Buffer.from(`\ufeff\ufeff${text}`) },
  ]),
];

const words: readonly JsonCase[] = [
  ...texts('y', 'a word', ['true', 'false', 'null']),
  ...texts(
    'n',
    'no word',
    spread(
      'True TRUE tru truee False FALSE fals Null NULL nul nulll None nil undefined yes no on off void this x _ $ ok t f n truefalse null1 nullnull',
    ),
  ),
];

const structures: readonly JsonCase[] = [
  ...texts('y', 'a structure', [
    '[]',
    '{}',
    '[[]]',
    '[{}]',
    '{"a":{}}',
    '[1,"a",null,true,{}]',
    '{"":0}',
    '{"a":[],"b":{}}',
    '{"\\u0000":1}',
    '{"a b":1}',
  ]),
  ...texts('y', 'white space', [
    '[ ]',
    '{\t}',
    '[\n]',
    '[\r]',
    ' [] ',
    '\t{ }\n',
    '\r\n[1 , 2]\r\n',
    '{ "a" : 1 }',
  ]),
  ...texts('y', 'a name of the language', [
    '{"__proto__":{"polluted":1}}',
    '{"constructor":{"prototype":{"polluted":1}}}',
    '{"prototype":1}',
    '{"toString":1}',
    '{"hasOwnProperty":null}',
    '{"toJSON":1}',
    '{"then":1}',
    '[{"__proto__":[]}]',
    '{"length":-1}',
    '{"valueOf":"x"}',
  ]),
  ...texts('i', 'a name twice', [
    '{"a":1,"a":2}',
    '{"a":1,"a":1}',
    '{"a":1,"\\u0061":2}',
    '{"":1,"":2}',
    '{"__proto__":1,"__proto__":2}',
    '[{"a":{},"a":[]}]',
    '{"model":"small","model":"dear"}',
    '{"model":"small","\\u006dodel":"dear"}',
  ]),
  ...texts('n', 'a wrong list', [
    '[1,]',
    '[,1]',
    '[1,,2]',
    '[,]',
    '[1 2]',
    '[1;2]',
    '[1:2]',
    '[1',
    '[',
    '1]',
    ']',
    '[[]',
    '[]]',
    '[1}',
    '["a"',
    '["a',
    '[1,',
    '[\\u0031]',
    '(1)',
    '<1>',
    '[1)',
    '[a]',
    '[...[]]',
    '[*]',
  ]),
  ...texts('n', 'a wrong object', [
    '{"a"}',
    '{"a":}',
    '{"a":1,}',
    '{,"a":1}',
    '{a:1}',
    "{'a':1}",
    '{"a" 1}',
    '{"a":1 "b":2}',
    '{,}',
    '{"a"::1}',
    '{"a":1:2}',
    '{1:1}',
    '{[]:1}',
    '{null:1}',
    '{true:1}',
    '{"a":1',
    '{"a"',
    '{"a',
    '{',
    '}',
    '{}}',
    '{{}}',
    '{"a":1]',
    '{"a"=1}',
    '{"a"=>1}',
    '{:1}',
    '{"a",1}',
    '{"a":1;"b":2}',
    '{"a":1,,"b":2}',
    '{"a":1,"b"}',
    '{\\u0022a":1}',
    '{"a":a}',
    '{"a":/x/}',
    '{"a":[1,2}',
  ]),
  ...texts('n', 'a comment', [
    '// x\n1',
    '1 // x',
    '/* x */1',
    '1/* x */',
    '# x\n1',
    '1 # x',
    '<!-- x -->1',
    '-- x',
    '[/**/]',
    '{"a":1/*',
  ]),
  ...otherSpaces.flatMap((code) =>
    texts('n', `U+${hex(code)} as white space`, [
      `${String.fromCharCode(code)}1`,
      `[1${String.fromCharCode(code)}]`,
    ]),
  ),
  ...texts(
    'n',
    'trailing data',
    [...'x]},"\0#:;!&'.split(''), '1', '{}', ' 1', '\n{}', '\n"a"', '/', '\\', '\n\n[]', '\u00a0'].map(
      (more) => `"a"${more}`,
    ),
  ),
  ...texts('n', 'nothing', ['', ' ', '\n', '\t\r\n ', '\0', '\0\0\0']),
];

const sizes: readonly JsonCase[] = [
  ...[2, 10, 50].map((depth): JsonCase => ({
    kind: 'y',
    name: `lists, ${depth} deep`,
    bytes: nested('[', ']', depth),
  })),
  ...[63, 64, 65, 100, 1_000, 10_000, 100_000].flatMap((depth): readonly JsonCase[] => [
    { kind: 'i', name: `lists, ${depth} deep`, bytes: nested('[', ']', depth) },
    { kind: 'i', name: `objects, ${depth} deep`, bytes: nested('{"a":', '}', depth, '1') },
  ]),
  ...[10, 1_000, 100_000].flatMap((depth): readonly JsonCase[] => [
    { kind: 'n', name: `lists, ${depth} deep and open`, bytes: Buffer.from('['.repeat(depth)) },
    { kind: 'n', name: `objects, ${depth} deep and open`, bytes: Buffer.from('{"a":'.repeat(depth)) },
    {
      kind: 'n',
      name: `lists and objects in turn, ${depth} deep and open`,
      bytes: Buffer.from('[{"":'.repeat(depth)),
    },
    { kind: 'n', name: `${depth} ends without a begin`, bytes: Buffer.from(']'.repeat(depth)) },
  ]),
  ...texts('y', 'much', [
    `"${'x'.repeat(100_000)}"`,
    `[${'1,'.repeat(3_000)}1]`,
    `"${'\\u0041'.repeat(10_000)}"`,
    `{"${'k'.repeat(50_000)}":1}`,
    `${' '.repeat(50_000)}1`,
  ]),
  ...texts('i', 'very much', [
    `[${'[],'.repeat(100_000)}[]]`,
    `{${Array.from({ length: 5_000 }, (_, index) => `"k${index}":1`).join()}}`,
  ]),
];

function nested(open: string, close: string, depth: number, inside = ''): Buffer {
  return Buffer.from(open.repeat(depth) + inside + close.repeat(depth));
}

/** All cases. */
export const jsonCases: readonly JsonCase[] = [
  ...numbers,
  ...strings,
  ...encodings,
  ...words,
  ...structures,
  ...sizes,
];
