import type { Policy } from './fairness.ts';
import { percent, seconds } from './report.ts';
import type { FairnessMeans } from './report.ts';

/** The bars of one policy, with colours that are readable on white and on black. */
const policies: readonly { readonly policy: Policy; readonly name: string; readonly colour: string }[] = [
  { policy: 'fair', name: 'fair queue', colour: '#2f81f7' },
  { policy: 'age', name: 'queue by age', colour: '#db6d28' },
  { policy: 'none', name: 'no queue', colour: '#a371f7' },
];

/** Lengths in pixels. */
const width = 640;
const labelWidth = 100;
const valueWidth = 70;
const barHeight = 16;
const titleHeight = 32;
const margin = 10;

interface Panel {
  readonly title: string;
  readonly value: (means: FairnessMeans) => number;
  readonly shown: (value: number) => string;
}

const panels: readonly Panel[] = [
  { title: 'mean wait of nine keys with a request each', value: ({ othersMs }) => othersMs, shown: seconds },
  { title: 'mean wait of the greedy key’s requests', value: ({ greedyMs }) => greedyMs, shown: seconds },
  { title: 'refused requests of the nine', value: ({ refusedOthers }) => refusedOthers, shown: percent },
  {
    title: 'refused requests of the greedy key',
    value: ({ refusedGreedy }) => refusedGreedy,
    shown: percent,
  },
  { title: 'use of the permits in the first 40 s', value: ({ usedEarly }) => usedEarly, shown: percent },
];

/** Draws what policies do with the same requests, as bars, times each to a scale of their own, shares to one. */
export function drawPolicies(means: ReadonlyMap<Policy, FairnessMeans>): string {
  let y = 0;
  const parts: string[] = [];
  for (const panel of panels) {
    y += titleHeight;
    parts.push(text(0, y - 8, panel.title, 'bold'));
    for (const bar of barsOf(panel, means, y)) parts.push(bar);
    y += barHeight * barsOf(panel, means, y).length;
  }
  const height = y + margin;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="${-margin} 0 ${width + 2 * margin} ${height}" width="${width + 2 * margin}" height="${height}"`,
    ` font-family="sans-serif" font-size="12" fill="#808890" role="img">`,
    '<title>Waits, refusals and use of an upstream with a fair queue, a queue by age, and no queue</title>',
    ...parts,
    '</svg>\n',
  ].join('\n');
}

function barsOf(
  { value, shown }: Panel,
  means: ReadonlyMap<Policy, FairnessMeans>,
  top: number,
): readonly string[] {
  const bars = policies.flatMap(({ policy, name, colour }) => {
    const found = means.get(policy);
    const length = found === undefined ? Number.NaN : value(found);
    // Without a queue nothing waits.
    return Number.isNaN(length) || (policy === 'none' && shown === seconds) ? [] : [{ name, colour, length }];
  });
  // Shares have one scale: a small one must not look like all.
  const most = shown === percent ? 1 : Math.max(...bars.map(({ length }) => length));
  return bars.map(({ name, colour, length }, index) => {
    const y = top + index * barHeight;
    const pixels = (length / most) * (width - labelWidth - valueWidth);
    return [
      text(0, y + 12, name),
      `<rect x="${labelWidth}" y="${y + 2}" width="${Math.max(1, pixels).toFixed(1)}" height="${barHeight - 4}" fill="${colour}"/>`,
      text(labelWidth + pixels + 6, y + 12, shown(length)),
    ].join('');
  });
}

function text(x: number, y: number, content: string, weight = 'normal'): string {
  return `<text x="${x.toFixed(1)}" y="${y}" font-weight="${weight}">${content}</text>`;
}
