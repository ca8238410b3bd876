import { dialects } from '../protocol/upstream/dialects.ts';
import type { Asked, RefusedAnswer } from './ask.ts';

/** Another way to ask, with which an upstream may answer what it refused. */
export interface OtherSetting {
  /** The setting, as it is written in a config. */
  readonly line: string;
  readonly asked: Asked;
}

/** Statuses that mean: this path is not served. */
const noSuchPath = new Set([404, 405, 501]);

/** The settings that may help with a refusal, the likeliest first. */
export function otherSettings(
  { failure: { kind }, status }: RefusedAnswer,
  { dialect, source, hasList }: Asked,
  isStream: boolean,
): readonly OtherSetting[] {
  const { quirks } = source;
  const settings: OtherSetting[] = [];
  if (kind === 'rejected' && dialect === 'chat') {
    if (isStream && quirks.streamUsage === 'ask')
      settings.push(withQuirk('streamUsage: given', { streamUsage: 'given' }));
    const other = quirks.maxTokensField === 'max_tokens' ? 'max_completion_tokens' : 'max_tokens';
    settings.push(withQuirk(`maxTokensField: ${other}`, { maxTokensField: other }));
  }
  if (noSuchPath.has(status) && (dialect === 'chat' || dialect === 'responses')) {
    const other = dialect === 'chat' ? 'responses' : 'chat';
    settings.push({
      line: `dialects: [${other}]`,
      asked: { dialect: other, source: { ...source, dialect: dialects[other] }, hasList },
    });
  }
  return settings;

  function withQuirk(line: string, quirk: Partial<typeof quirks>): OtherSetting {
    return { line, asked: { dialect, source: { ...source, quirks: { ...quirks, ...quirk } }, hasList } };
  }
}
