import { formatTime, shortName } from '../../widgets/format.ts';
import type { PresentedAuditLine } from '../../../http/present/audit.ts';

/** What was done, in words: `key changed: bob`. */
export function writeAct({ action, subject, key_id: keyId, actor, times }: PresentedAuditLine): string {
  const about = subject ?? keyId;
  const by = actor === null ? '' : `, by ${shortName(actor)}`;
  const often = times > 1 ? ` (${times} times)` : '';
  return `${actionText(action)}${about === null ? '' : `: ${shortName(about)}`}${by}${often}`;
}

const texts: Readonly<Record<PresentedAuditLine['action'], string>> = {
  'key.create': 'key made',
  'key.change': 'key changed',
  'key.revoke': 'key revoked',
  'key.rotate': 'secret replaced',
  'key.credit': 'key credited',
  'config.load': 'config loaded',
  'request.cancel': 'request cancelled',
  'request.try': 'model tried out',
  'records.remove': 'records removed',
  'ledger.fold': 'postings added up',
  'audit.remove': 'lines of the audit removed up to',
  'webhook.resend': 'event sent again',
  'webhook.test': 'webhook tested',
  'database.backup': 'database copied',
  'database.restore': 'database restored',
  'database.move': 'database moved',
  'session.open': 'logged in',
  'session.end': 'logged out',
  'admin.call': 'call of the admin API',
  'more.refused': 'further refused calls',
};

/** An action in words. */
export function actionText(action: PresentedAuditLine['action']): string {
  return texts[action];
}

/** All actions with their words, for a choice. */
export const actions = Object.entries(texts);

/** What the config says of a key that has none of its own: nothing in these fields is no lack of a limit. */
const defaulted =
  /^(concurrency|requestsPerMinute|tokensPerMinute|tokensPerDay|queueWait|lowBalance|compatibility\..*)$/;

/** A time as the audit has it, in UTC. */
const instant = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,3})?Z$/;

/** A field before or after a change; times in the zone of the viewer, as in all columns. */
export function writeValue(
  action: PresentedAuditLine['action'],
  field: string,
  value: string | null,
): string {
  if (value === null) return action === 'key.change' && defaulted.test(field) ? 'default' : 'none';
  return instant.test(value) ? formatTime(value) : value;
}
