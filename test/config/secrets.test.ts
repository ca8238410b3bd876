import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { loadYaml, problemsOf } from '../support/config-file.ts';
import { propertyRun } from '../support/property-run.ts';

/** A text with a canary, which has a digit as secrets have, among characters of YAML, references and addresses. */
const secret = fc
  .tuple(
    fc.stringMatching(/^[!@#$%&*{}[\]:?'"\\|>`~<=\-. /a]{0,4}$/),
    fc.constantFrom('canary7', 'canary7${', 'canary7$x', 'canary7: ', 'canary7 #', "canary7'", 'canary7"'),
    fc.stringMatching(/^[!@#$%&*{}[\]:?'"\\|>`~<=\-. /a]{0,4}$/),
  )
  .map((parts) => parts.join(''));

const models = 'models: { from: local }\n';

/** Files with a secret in the place of the mark, in block and flow style, with and without quotes and blanks. */
const files = [
  `upstreams:\n  local:\n    url: http://x/v1\n    apiKey: <>\n${models}`,
  `upstreams:\n  local:\n    url: http://x/v1\n    apiKey: "<>"\n${models}`,
  `upstreams:\n  local:\n    url: http://x/v1\n    apiKey:<>\n${models}`,
  `upstreams:\n  local:\n    url: <>\n    headers:\n      x-key: '<>'\n${models}`,
  `upstreams: { local: { url: http://x/v1, apiKey: <> } }\n${models}`,
  `upstreams: { local: { url: http://x/v1, apiKey:<> } }\n${models}`,
  `admin: { token: <> }\n${models}`,
  `admin:\n  token: |\n    <>\nadmin: {}\n`,
];

/**
 * Whether a text is as random as keys are: a text without digits may consist of words, from which it can't be told apart,
 * and the generators also make texts of very few characters.
 */
const isRandom = (text: string): boolean => (text.match(/\d/g) ?? []).length > 2 && new Set(text).size >= 10;

/** The random part of a secret, in the alphabets of the providers' keys and of hashes. */
const plainCore = fc
  .oneof(fc.stringMatching(/^[A-Za-z0-9]{20,48}$/), fc.stringMatching(/^[0-9a-f]{32,64}$/))
  .filter(isRandom);

/** The same, with signs that are usual in names, too. */
const anyCore = fc.oneof(
  plainCore,
  fc.stringMatching(/^[A-Za-z0-9_-]{24,43}$/).filter(isRandom),
  fc.uuid().filter(isRandom),
);

const prefixes = ['', 'sk-', 'sk-live-', 'sk-proj-', 'sk_test_', 'gsk_', 'AIza', 'Bearer ', '\\U'];

/** A file with a random secret in the places of its marks. The `\U` is an invalid escape sequence in double quotes. */
function fileFrom(templates: readonly string[], core: fc.Arbitrary<string>) {
  return fc
    .tuple(fc.constantFrom(...templates), fc.constantFrom(...prefixes), core)
    .map(([file, prefix, random]) => ({ yaml: file.replaceAll('<>', () => prefix + random), random }));
}

/** The places of a mapping where a secret can be a part of a key by mistake. */
const misplaced = [
  'apiKey <>',
  'apiKey=<>:',
  'apiKey = <>:',
  'apiKey:<>',
  'apiKey:<>:',
  '"apiKey: <>": ""',
  'apiKey: {<>}',
  'apiKey: { file: <> }',
  'apiKey: [<>]',
  '<>',
  '<>:',
  '"<>":',
  '<>: {}',
  'headers: { "Authorization: <>": "" }',
  'headers: { X-Key:<> }',
  'headers: { "X-Key <>": $x }',
  'headers: { <>: 1 }',
  'headers: <>',
  'probe: { <>: "${X" }',
  'apiKey: "<>',
  'apiKey: "${<>}"',
  'apiKey: <>: x',
].map((line) => [
  `upstreams:\n  local:\n    url: http://x/v1\n    ${line}\n${models}`,
  `upstreams: { local: { url: http://x/v1, ${line} } }\n${models}`,
]);

/** The same for other sections. */
const misplacedElsewhere = [
  'keys: { bob: <> }',
  'keys: { bob: { key: { <> } } }',
  'keys: { bob: { key=<>: } }',
  'keys: { bob: { key:<> } }',
  'keys: { bob: { key: "<>", models: ["<>"], queueWait: <> } }',
  'admin: { token:<> }',
  'admin: { token <> }',
  'admin: { host: "<>:", port: <> }',
  'storage: { url=<>: x }',
  '<>',
  '<>: {}',
  'passthrough: [{ path: <>, upstream: <> }]',
].map((line) => `upstreams: { local: { url: http://x/v1 } }\n${models}${line}\n`);

const misplacedNames = [
  `upstreams: { local: { url: http://x/v1 } }\n${models}keys: { <> }\n`,
  `upstreams: { local: { url: http://x/v1 } }\n${models}keys: { <>: { concurrency: 0 } }\n`,
  `upstreams: { local: { url: http://x/v1 } }\n${models}keys:\n  <>:\n    key: <>\n  bob:\n    key: <>\n`,
  `upstreams: { <>: { url: x } }\n${models}`,
  `upstreams: { "apiKey <>": { url: x } }\n${models}`,
  `upstreams: { <>: { url: http://x/v1 } }\n${models}`,
  'upstreams: { local: { url: http://x/v1 } }\nmodels: { <>: { routes: [{ upstream: <>, model: m }] } }\n',
];

/** In the place of a name of the author's choice, only a secret without signs can be told from a name. */
const misplacedFile = fc.oneof(
  { weight: 9, arbitrary: fileFrom([...misplaced.flat(), ...misplacedElsewhere], anyCore) },
  { weight: 1, arbitrary: fileFrom(misplacedNames, plainCore) },
);

/** How many characters of a secret in a row may be in a message: fewer occur by chance. */
const maxShown = 7;

/** Whether a text has more of a secret's random part than may be shown. */
function reveals(text: string, random: string): boolean {
  return Array.from({ length: random.length - maxShown }, (_, start) =>
    random.slice(start, start + maxShown + 1),
  ).some((part) => text.includes(part));
}

/** A file that takes every kind of value from the same variable. */
const fromEnvironment = `
server: { host: "\${V}", port: "\${V}", drain: "\${V}", maxBody: "\${V}" }
admin: { token: "\${V}" }
storage: { url: "\${V}", durability: "\${V}" }
limits: { lowBalance: "\${V}", balanceMode: "\${V}" }
compatibility: { responsesDone: "\${V}" }
upstreams:
  local: { url: "\${V}", apiKey: "\${V}", authHeader: "\${V}", headers: { x: "\${V}" }, dialects: ["\${V}"], probe: { path: "\${V}" } }
passthrough: [{ path: "\${V}", upstream: "\${V}" }]
models:
  small: { routes: [{ upstream: "\${V}", model: "\${V}" }], price: { input: "\${V}", output: "\${V}" } }
`;

describe('the problems of a config', () => {
  test('never quote a secret of the file, however it is written', () => {
    let refused = 0;
    fc.assert(
      fc.property(fc.constantFrom(...files), secret, (file, value) => {
        const problems = problemsOf(() =>
          loadYaml(
            file.replaceAll('<>', () => value),
            { KEY: 'k' },
          ),
        );
        refused += Math.min(1, problems.length);
        expect(problems.join('\n')).not.toContain('canary7');
      }),
      propertyRun(200),
    );
    expect(refused).toBeGreaterThan(20);
  });

  test('never quote a random secret that has become a part of a key or a name', () => {
    let refused = 0;
    fc.assert(
      fc.property(misplacedFile, ({ yaml, random }) => {
        const problems = problemsOf(() => loadYaml(yaml));
        refused += Math.min(1, problems.length);
        expect(problems.filter((problem) => reveals(problem, random))).toEqual([]);
      }),
      propertyRun(450),
    );
    expect(refused).toBeGreaterThan(300);
  });

  test('never quote the beginning of a random secret in the braces of a reference, with figures in two of its parts', () => {
    const yaml = `upstreams: { local: { url: http://x/v1, apiKey: "\${A0_A00A0-0Ada--a-c---_0ba-e-1-}" } }\n${models}`;
    const problems = problemsOf(() => loadYaml(yaml));
    expect(problems).toHaveLength(1);
    expect(problems.filter((problem) => reveals(problem, 'A0_A00A0-0Ada--a-c---_0ba-e-1-'))).toEqual([]);
  });

  test('never quote the beginning of a random secret in capitals before a hyphen, with all kinds of letters behind it', () => {
    const random = 'AA_00_0_-aAA0-__--b-B21C---';
    const yaml = `upstreams: { local: { url: http://x/v1, apiKey: "\${${random}}" } }\n${models}`;
    const problems = problemsOf(() => loadYaml(yaml));
    expect(problems).toHaveLength(1);
    expect(problems.filter((problem) => reveals(problem, random))).toEqual([]);
  });

  test('never quote the value of a variable, wherever it is used', () => {
    fc.assert(
      fc.property(secret, (value) => {
        const problems = problemsOf(() => loadYaml(fromEnvironment, { V: value }));
        expect(problems.length).toBeGreaterThan(10);
        expect(problems.join('\n')).not.toContain('canary7');
      }),
      propertyRun(100),
    );
  });
});
