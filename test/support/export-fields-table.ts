import { formats } from '../../src/cli/reconcile/formats.ts';
import type { ExportFormat } from '../../src/cli/reconcile/formats.ts';
import { quantities } from '../../src/cli/reconcile/quantities.ts';
import type { Quantity } from '../../src/cli/reconcile/quantities.ts';

/** The documentation's table of the fields that are read of each export. */
export function writeExportFieldsTable(): string {
  const head = [
    'format',
    'day',
    'model',
    'requests',
    'input',
    'cached input',
    'cache writes',
    'output',
    'cost',
  ];
  const rows = formats.map((format) => {
    const { name, form, time, model, cost } = format;
    const said = [time.map(code).join(' or '), code(model)];
    const sums = quantities.map((quantity) => writeFields(format, quantity));
    const costs = cost === null ? '–' : `${code(cost)}?`;
    return [`\`${name}\`, ${form.toUpperCase()}`].concat(said, sums, costs);
  });
  const lines = [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`);
  return `${lines.join('\n')}\n\nSeveral fields are added up. A field with \`?\` may be missing; its quantity is compared if it is there.`;
}

function code(field: string): string {
  return `\`${field}\``;
}

function writeFields({ quantities: read }: ExportFormat, quantity: Quantity): string {
  const fields = read[quantity];
  if (fields === undefined) return '–';
  if (fields === 'each_row') return 'one per row';
  return fields.map((field) => field.replace(/[^?]+/, code)).join(' + ');
}
