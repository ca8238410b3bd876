import type { UpstreamReport } from './report.ts';

/** The shortest text that is masked, in characters: a shorter one would mask parts of words. */
const leastSecretChars = 6;

const mask = '(hidden)';

/**
 * Masks an upstream's key and header values wherever they stand in its report: an upstream chooses the names of its
 * models and finish reasons, and might quote what it was sent.
 */
export function withoutSecrets(report: UpstreamReport, secrets: readonly string[]): UpstreamReport {
  const hidden = secrets.filter((secret) => secret.length >= leastSecretChars);
  const clean = (text: string): string =>
    hidden.reduce((cleaned: string, secret) => cleaned.replaceAll(secret, mask), text);
  return {
    ...report,
    url: clean(report.url),
    checks: report.checks.map((check) => ({
      ...check,
      detail: clean(check.detail),
      advice: check.advice === null ? null : clean(check.advice),
    })),
  };
}
