import { registry } from '../../src/protocol/contract/registry.ts';
import type { FieldPolicy, Rule } from '../../src/protocol/contract/rule.ts';

/** The documentation's compatibility tables, one for each kind of object in a request. */
export function writeContractTables(): string {
  const sections = [
    ['Chat Completions', registry.chat.rules],
    ['`stream_options`', registry.streamOptions.rules],
    ['`response_format`', registry.responseFormat.rules],
    ['A chat message', registry.message.rules],
    ['A content part of a chat message', registry.contentPart.rules],
    ['Responses', registry.responses.rules],
    ['`stream_options` of Responses', registry.responsesStreamOptions.rules],
    ['`text`', registry.text.rules],
    ['`text.format`', registry.textFormat.rules],
    ['A message among the input items', registry.inputMessage.rules],
    ['A content part of an input item', registry.inputPart.rules],
  ] as const;
  return sections.map(([title, rows]) => `**${title}**\n\n${writeTable(rows)}`).join('\n\n');
}

/** Joins fields with equal rows into one row. */
function writeTable(rows: readonly Rule[]): string {
  const names = new Map<string, string[]>();
  for (const { name, policy, why } of rows) {
    const cells = `${writePolicy(policy)} | ${why}`;
    names.set(cells, [...(names.get(cells) ?? []), `\`${name}\``]);
  }
  const lines = [...names].map(([cells, fields]) => `| ${fields.join(' ')} | ${cells} |`);
  return ['| field | handling | why |', '|---|---|---|', ...lines].join('\n');
}

function writePolicy(policy: FieldPolicy): string {
  switch (policy.kind) {
    case 'forward':
      return policy.required ? 'required' : 'used';
    case 'strip':
      return 'stripped';
    case 'echo':
      return 'stripped, repeated in the response';
    case 'sampling':
      return `stripped; in strict mode refused unless ${policy.defaults.join(', ')}`;
    case 'refuse':
      return policy.neutral.length === 0
        ? `refused: \`${policy.code}\``
        : `stripped if ${policy.neutral.map((value) => `\`${JSON.stringify(value)}\``).join(', ')}, else \`${policy.code}\``;
    case 'misplaced':
      return 'refused: `unknown_parameter`, with a hint';
  }
}
