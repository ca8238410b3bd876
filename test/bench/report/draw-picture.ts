import type { FigureRow } from './figures.ts';

/** The figures in the picture, by their ids. */
const shown = [
  'whole.cpuPerRequest',
  'blast8.cpuPerEvent',
  'paced.cpuPerEvent',
  'burst.p99',
  'open.perStream',
  'open.idle',
];

/** The subjects in the picture, with their colours: readable on white and on black. */
const colours: Readonly<Record<string, string>> = {
  textgate: '#2f81f7',
  nginx: '#3fb950',
  naive: '#a371f7',
  ledger: '#8b949e',
  portkey: '#db6d28',
};

/** Lengths in pixels. */
const width = 860;
const labelWidth = 90;
const valueWidth = 90;
const barHeight = 16;
const titleHeight = 34;
const margin = 10;

/** Draws the medians of some figures as bars, each figure to its own scale; shorter is better in all of them. */
export function drawPicture(rows: readonly FigureRow[]): string {
  let y = 0;
  const parts: string[] = [];
  for (const row of shown.flatMap((id) => rows.filter((one) => one.id === id))) {
    y += titleHeight;
    parts.push(text(0, y - 10, `${row.scenario}: ${row.figure.title}, ${row.figure.unit}`, 'bold'));
    for (const bar of barsOf(row, y)) parts.push(bar);
    y += barHeight * barsOf(row, y).length;
  }
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="${-margin} 0 ${width + 2 * margin} ${y + margin}" width="${width + 2 * margin}" height="${y + margin}"`,
    ` font-family="sans-serif" font-size="12" fill="#808890" role="img">`,
    '<title>CPU, latency and memory beside nginx, a naive rewriter and Portkey; shorter bars are better</title>',
    ...parts,
    '</svg>\n',
  ].join('\n');
}

function barsOf({ figure, bySubject }: FigureRow, top: number): readonly string[] {
  const present = Object.keys(colours).flatMap((name) => {
    const summary = bySubject.get(name);
    return summary === undefined ? [] : [{ name, value: summary.median }];
  });
  const most = Math.max(...present.map(({ value }) => value));
  return present.map(({ name, value }, index) => {
    const y = top + index * barHeight;
    const length = most <= 0 ? 0 : Math.max(1, (value / most) * (width - labelWidth - valueWidth));
    return [
      text(0, y + 12, name),
      `<rect x="${labelWidth}" y="${y + 2}" width="${length.toFixed(1)}" height="${barHeight - 4}" fill="${colours[name]}"/>`,
      text(labelWidth + length + 6, y + 12, value.toFixed(figure.digits)),
    ].join('');
  });
}

function text(x: number, y: number, content: string, weight = 'normal'): string {
  const escaped = content.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
  return `<text x="${x.toFixed(1)}" y="${y}" font-weight="${weight}">${escaped}</text>`;
}
