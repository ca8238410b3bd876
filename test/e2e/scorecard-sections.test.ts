import { expect, test } from 'vitest';
import { randomNumbers } from '../support/random-numbers.ts';
import { section as bodies } from '../scorecard/sections/bodies.ts';
import { section as drain } from '../scorecard/sections/drain.ts';
import { section as guessing } from '../scorecard/sections/guessing.ts';
import { section as reload } from '../scorecard/sections/reload.ts';
import { section as resets } from '../scorecard/sections/resets.ts';
import type { Section } from '../scorecard/section.ts';

/** How much of each section is tried in every run of the tests, of what `npm run scorecard` tries. */
const samples: readonly (readonly [Section, number])[] = [
  [bodies, 0.04],
  [drain, 0.01],
  [guessing, 0.015],
  [reload, 0.06],
  [resets, 0.025],
];

test.each(samples.map(([section, scale]) => [section.title, section, scale] as const))(
  'a sample of the scorecard: %s',
  async (_title, section, scale) => {
    const { seed } = randomNumbers();
    const { cases, faults } = await section.run({ seed, scale, log: () => {} });
    process.stdout.write(`${section.name}: ${cases} cases (seed ${seed})\n`);
    expect(cases).toBeGreaterThan(0);
    expect(faults).toEqual([]);
  },
);
