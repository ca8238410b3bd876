import type { DeclarationReport } from '../domain/keys/declared-key.ts';
import type { LogFields, ReportFault } from '../domain/ports/telemetry.ts';

/** How many names of keys a line of the log has. */
const maxNames = 20;

/** Where the changes are logged. */
interface DeclarationLog {
  readonly fault: ReportFault;
  readonly notice: (message: string, fields?: LogFields) => void;
  readonly info: (message: string, fields?: LogFields) => void;
}

/** The lines of the log about what a config has changed. */
const notices: Readonly<Record<Exclude<keyof DeclarationReport, 'changed' | 'refused'>, string>> = {
  removed: 'keys revoked, because neither the config nor TEXTGATE_KEY declares them any more',
  renamed: 'declared keys renamed, with their accounts',
  adopted: 'issued keys are declared now, and their earlier secrets are refused even in a grace period',
  unfunded:
    'declared keys have a balance of 0, because their secrets were those of other keys with a balance; undoing the change does not undo it: credit them, or declare new ones, with other names and secrets',
};

/** Logs which keys a config has changed, which of its keys are refused, and what to do if none is left. */
export async function reportDeclarations(
  report: DeclarationReport,
  anyActive: () => Promise<boolean>,
  { fault, info, notice }: DeclarationLog,
): Promise<void> {
  const { changed, removed, refused } = report;
  if (changed.length > 0) info('declared keys created or changed', namesOf(changed));
  for (const [part, message] of Object.entries(notices)) {
    const names = report[part as keyof typeof notices];
    if (names.length > 0) notice(message, namesOf(names));
  }
  if (refused.length > 0)
    fault('declared keys refused', 'their secrets were revoked or rotated', namesOf(refused));
  if (removed.length === 0) return;
  try {
    if (!(await anyActive()))
      notice(
        'no active key is left, so all requests are refused: set TEXTGATE_KEY again, declare a key in the config, or run textgate keys create <name>',
      );
  } catch (error) {
    fault('the keys could not be read', error);
  }
}

function namesOf(names: readonly string[]): LogFields {
  const more = names.length - maxNames;
  return { names: [...names.slice(0, maxNames), ...(more > 0 ? [`${more} more`] : [])] };
}
