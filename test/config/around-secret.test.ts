import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { loadYaml, problemsOf as problemsOfLoading } from '../support/config-file.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';

const key = 'sk-Yq3vT9LmW0zKc7Rb1';
const problemsOf = (yaml: string, environment = {}): readonly string[] =>
  problemsOfLoading(() => loadYaml(yaml, environment));

const quotes = 'the quotes at both ends would be a part of it';
const bearer = 'expected the key alone, without Bearer before it';

const file = (apiKey: string, more = ''): string =>
  `upstreams: { local: { url: http://127.0.0.1:8000/v1, apiKey: ${apiKey} } }\nmodels: { from: local }\n${more}`;

function fileWith(text: string): string {
  const path = join(makeTemporaryFolder(), 'key');
  writeFileSync(path, text);
  return path;
}

describe('a secret is refused, and not quoted,', () => {
  test.each([
    ['with double quotes around it', `"${key}"`, quotes],
    ['with single quotes around it', `'${key}'`, quotes],
    ['behind Bearer', `Bearer ${key}`, bearer],
  ])('%s', (_name, text, problem) => {
    const sources = [
      problemsOf(file('"${KEY}"'), { KEY: text }),
      problemsOf(file(`{ file: ${fileWith(`${text}\n`)} }`)),
      problemsOf(file('x', 'keys: { bob: { key: "${KEY}" } }\n'), { KEY: text }),
      problemsOf(file('x'), { TEXTGATE_KEY: text }),
      problemsOf(file('x'), { TEXTGATE_KEY_FILE: fileWith(text) }),
    ];
    for (const problems of sources) {
      expect(problems).toEqual([expect.stringContaining(problem)]);
      expect(problems.join()).not.toContain(key);
    }
  });

  test('but not with a quote at one end only, or with Bearer as the beginning of a word', () => {
    for (const text of [`"${key}`, `${key}'`, `bearer-${key}`])
      expect(problemsOf(file('"${KEY}"'), { KEY: text })).toEqual([]);
  });
});
