import type { CallTarget, Diagnosis } from './call-target.ts';

/** The beginning of the code of a fault between the gateway and a proxy; what follows is the fault's own code. */
export const proxyPrefix = 'PROXY_';

/** The beginning of the code of a proxy's refusal; what follows is the status of its answer. */
export const proxyStatusPrefix = `${proxyPrefix}STATUS_`;

/** Explains a fault of a connection by its code, the host at its end, and whether it should have used TLS. */
type ExplainCode = (code: string, host: string, isTls: boolean) => string;

/** Explains a fault that lies before, at or behind a proxy; `null` for one that no proxy has to do with. */
export function explainProxyFault(
  code: string,
  { base, proxy, names }: CallTarget,
  explainCode: ExplainCode,
): Diagnosis | null {
  if (proxy === null || !code.startsWith(proxyPrefix)) return null;
  const { address, isTls, name } = proxy;
  if (!code.startsWith(proxyStatusPrefix)) {
    const host = address.replace(/:\d+$/, '').replaceAll(/[[\]]/g, '');
    return {
      cause: `the proxy ${address} can't be reached: ${explainCode(code.slice(proxyPrefix.length), host, isTls)}`,
      advice: `Start the proxy, or correct its address in ${name}.`,
    };
  }
  const status = Number(code.slice(proxyStatusPrefix.length));
  const { host, hostname } = new URL(base);
  const cause = `the proxy ${address} refused (status ${status})`;
  if (status === 407) return { cause, advice: `Correct the user and password in ${name}.` };
  const without = `or write ${names.proxy}: none${name === names.proxy ? '' : `, or ${hostname} into NO_PROXY`}`;
  return status >= 500
    ? { cause, advice: `Check that the proxy itself can reach ${host} (its log), ${without}.` }
    : { cause, advice: `Permit connections to ${host} at the proxy, ${without}.` };
}

/** A sentence for answers that a proxy may have given itself: without TLS it reads what it passes on. */
export function proxyHint({ base, proxy }: CallTarget): string {
  if (proxy === null || base.startsWith('https:')) return '';
  return ` The proxy ${proxy.address} (${proxy.name}) may have answered in place of the server.`;
}
