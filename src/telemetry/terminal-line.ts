import { escapeControlCharacters } from '../shared/control-characters.ts';

/** The fields of a log line that a terminal shows. */
type Line = Readonly<Record<string, string | number | null | undefined>>;

/**
 * What is worth a line on a terminal: a request in a few words, anything else with its reason. Names may come from
 * upstreams, so nothing in them may reach the terminal as a control sequence or as a second line.
 */
export function terminalLine(line: Line): string {
  const { msg, reason, upstream, count } = line;
  if (msg === 'request') return escapeControlCharacters(requestLine(line));
  const words = [msg, upstream, reason, count].filter((word) => word !== undefined && word !== null);
  return escapeControlCharacters(words.join(': '));
}

function requestLine(line: Line): string {
  const { protocol, mode, model, upstream, status, outcome, code, inputTokens, outputTokens } = line;
  const words = [
    `${protocol} ${mode} ${model ?? '-'}${upstream === null ? '' : ` via ${upstream}`}:`,
    `${status} ${outcome}${code === null ? '' : ` (${code})`}`,
    ...(inputTokens === null ? [] : [`${inputTokens}+${outputTokens} tokens`]),
    `${line['charge']} USD ${line['totalMs']} ms ${line['requestId']}`,
  ];
  return words.join(' ');
}
