import { alerts } from '../observability/monitoring-files.ts';

/** The documentation's entry of each alert: what it means, when it fires, and what to check first. */
export function writeAlertEntries(): string {
  return alerts
    .map(({ alert = '', expr, for: after, labels = {}, annotations = {} }) => {
      const when = after === undefined ? 'at once' : `after ${after}`;
      const { summary = '', description = '', runbook = '' } = annotations;
      const said = description.replaceAll(/\{\{ \$(?:labels\.)?(\w+)[^}]*\}\}/g, '_$1_');
      return [
        `### ${alert}`,
        `**${labels['severity']}: ${summary}.** ${said}`,
        runbook,
        `Fires ${when} if:`,
        `\`\`\`promql\n${expr.trim()}\n\`\`\``,
      ].join('\n\n');
    })
    .join('\n\n');
}
