import { expect, test } from 'vitest';
import { randomNumbers } from '../support/random-numbers.ts';
import { section as bodies } from '../scorecard/sections/bodies.ts';
import type { Section } from '../scorecard/section.ts';

/** How much of each section is tried in every run of the tests, of what `npm run scorecard` tries. */
const samples: readonly (readonly [Section, number])[] = [[bodies, 0.15]];

test.each(samples.map(([section, scale]) => [section.title, section, scale] as const))(
  'a sample of the scorecard: %s',
  async (_title, section, scale) => {
    const { seed } = randomNumbers();
    const { cases, faults } = await section.run({ seed, scale, log: () => {} });
    process.stdout.write(`${section.name}: ${cases} cases (seed ${seed})\n`);
    expect(cases).toBeGreaterThan(20);
    expect(faults).toEqual([]);
  },
);
