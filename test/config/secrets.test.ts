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
      propertyRun(500),
    );
    expect(refused).toBeGreaterThan(50);
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
