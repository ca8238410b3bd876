import type { LookupAddress } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { linkLocalRefused } from '../domain/diagnosis/fault-explanations.ts';
import { isLinkLocal } from '../shared/link-local.ts';

/** Resolves host names with `lookup`, but fails for one that resolves to a link-local address. */
export function refusingLookup(lookup: LookupFunction): LookupFunction {
  return (hostname, options, callback) =>
    lookup(hostname, options, (error, found: string | LookupAddress[], family) => {
      const addresses = Array.isArray(found) ? found.map(({ address }) => address) : [found];
      const refused = error === null && (isLinkLocal(hostname) || addresses.some(isLinkLocal));
      if (!refused) return callback(error, found, family);
      const refusal = new Error(`${hostname} resolves to a link-local address, which is refused`);
      callback(Object.assign(refusal, { code: linkLocalRefused }), []);
    });
}
