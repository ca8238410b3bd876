import { expect, test } from 'vitest';
import { loadYaml } from '../support/config-file.ts';
import { compareSection } from '../support/generated-section.ts';

/** The files of which docs/operators/config.md shows the problems. */
const files = [
  `upstreams:
  bought:
    url: https://openrouter.ai/api/v1/chat/completions
    apiKey: $OPENROUTER_API_KEY
models: { from: bougth }
server: { drain: 25, prot: 8080 }
`,
  `upstreams:
  bought: { url: https://openrouter.ai, apiKey: \${OPENROUTER_API_KEY} }
models: { from: bought }
`,
];

function refusalOf(yaml: string): string {
  try {
    loadYaml(yaml);
  } catch (error) {
    return (error as Error).message.replace(/^\S+\//, '');
  }
  return '';
}

test('docs/operators/config.md shows the problems as they are reported', () => {
  const shown = files.map((yaml) => `\`\`\`yaml\n${yaml}\`\`\`\n\n\`\`\`\n${refusalOf(yaml)}\n\`\`\``);
  const { wanted, found } = compareSection('config problems', shown.join('\n\n'));
  expect(found).toBe(wanted);
});
