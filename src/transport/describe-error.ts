/** How much of an error's message is kept, in characters. */
const maxCauseChars = 200;

/** Codes of an address that says least about a host with several: there is no way to it, or it did not answer in time. */
const leastTelling = new Set(['ENETUNREACH', 'EHOSTUNREACH', 'EADDRNOTAVAIL', 'ETIMEDOUT']);

/**
 * An error's code, or its class if it has none, and its message: the operator's only hint at a wrong address, a bad
 * certificate or a broken connection. Of a host with several addresses, each with an error of its own, the one that says
 * most counts.
 */
export function describeError(error: Error): { readonly code: string; readonly cause: string } {
  const { name, message, code = name } = mostTelling(error);
  return { code, cause: `${code}: ${message}`.slice(0, maxCauseChars) };
}

function mostTelling(error: NodeJS.ErrnoException): NodeJS.ErrnoException {
  if (!(error instanceof AggregateError)) return error;
  const errors = error.errors as readonly NodeJS.ErrnoException[];
  return errors.find(({ code = '' }) => !leastTelling.has(code)) ?? errors[0] ?? error;
}
