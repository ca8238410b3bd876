import { digest } from '../../shared/digest.ts';
import type { ErrorCode } from '../../shared/errors.ts';
import { linkHash } from '../statements/chain.ts';
import type { FieldChange } from './differences.ts';
import { withoutKeys } from './safe-text.ts';
import type { SafeText } from './safe-text.ts';

/** By what way something is changed: `code` is an app that mounts the gateway, `start` the process itself. */
export const auditWays = ['admin_api', 'console', 'cli', 'code', 'config', 'declared_keys', 'start'] as const;

/** Who changes something. */
export interface Actor {
  readonly way: (typeof auditWays)[number];
  /** The name of the token, or of the user who runs a command; `null` where none was given. */
  readonly name: string | null;
  /** The address of the client; `null` where there is none, and where addresses are not logged. */
  readonly address: string | null;
}

/** What is done. */
export const auditActions = [
  'key.create',
  'key.change',
  'key.revoke',
  'key.rotate',
  'key.credit',
  'config.load',
  'request.cancel',
  'request.try',
  'records.remove',
  'ledger.fold',
  // Lines of the audit itself that are old: the number of the last one is the subject.
  'audit.remove',
  'webhook.resend',
  'webhook.test',
  'database.backup',
  'database.restore',
  'database.move',
  'session.open',
  'session.end',
  // What is refused beside those: a call without a right token, and what a read-only token may not do.
  'admin.call',
  // How many refusals of a minute have no line of their own. Try-outs that have none share one.
  'more.refused',
] as const;

export type AuditAction = (typeof auditActions)[number];

/**
 * What became of it: the code of a refusal, or that a config has faults; `refused` is for several refusals, `unanswered` for
 * an act whose client left before its answer, and `client_closed` for a try-out whose operator left.
 */
type AuditResult = 'done' | 'unanswered' | 'client_closed' | 'refused' | 'config_invalid' | ErrorCode;

/** What a line of the audit says. No field has a secret, a prompt or an answer. */
interface Said<Text extends string> {
  readonly actor: Actor;
  readonly action: AuditAction;
  /** The id of the key that it is about; `null` for none. */
  readonly keyId: Text | null;
  /** What it is about: the name of the key, or of a webhook, the id of a request; `null` for nothing else. */
  readonly subject: Text | null;
  readonly result: AuditResult;
  /** How many such acts the line stands for. */
  readonly times: number;
  readonly changes: readonly FieldChange<Text>[];
}

/** What is stored as a line. */
export type AuditEntry = Said<SafeText>;

/** An entry of something that was done once to a key that is there, whose name is stored with it, or to another thing. */
export function keyEntry(
  actor: Actor,
  action: AuditAction,
  keyId: string | null,
  changes: readonly FieldChange[],
  subject: SafeText | null = null,
): AuditEntry {
  return {
    actor,
    action,
    keyId: keyId === null ? null : withoutKeys(keyId),
    subject,
    result: 'done',
    times: 1,
    changes: safeChanges(changes),
  };
}

/** Changes whose values have no key. */
export function safeChanges(changes: readonly FieldChange[]): AuditEntry['changes'] {
  return changes.map(({ field, before, after }) => ({
    field,
    before: safeValue(before),
    after: safeValue(after),
  }));
}

function safeValue(value: string | null): SafeText | null {
  return value === null ? null : withoutKeys(value);
}

/** A stored line. */
export interface AuditLine extends Said<string> {
  /** From 1 on, without a gap. */
  readonly number: number;
  /** Milliseconds since 1970. */
  readonly createdAtMs: number;
}

/** The key of the audit's chain among those of the accounts in seals and roots: no account has such an id. */
export const auditChainId = 'audit';

/** The hash of the chain of lines before the first one. */
export const startOfAudit = digest('textgate audit 1\n');

/** The hash of the chain with one more line. */
export function linkAuditLine(previous: string, line: AuditLine): string {
  const { number, createdAtMs, actor, action, keyId, subject, result, times, changes } = line;
  const { way, name, address } = actor;
  const told = changes.map(({ field, before, after }) => [field, before, after]);
  const time = new Date(createdAtMs).toISOString();
  return linkHash(
    previous,
    JSON.stringify([number, time, way, name, address, action, keyId, subject, result, times, told]),
  );
}
