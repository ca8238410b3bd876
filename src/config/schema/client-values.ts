import { z } from 'zod';
import { networkOr } from '../../shared/schema-values.ts';

/** The names of networks that every machine has, as Express' `trust proxy` has them, but for `private`. */
const namedNetworks: ReadonlyMap<string, readonly string[]> = new Map([
  ['loopback', ['127.0.0.0/8', '::1']],
  ['linklocal', ['169.254.0.0/16', 'fe80::/10']],
  ['private', ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', 'fc00::/7']],
]);

/** The most proxies and origins: a request may be compared with all of them. */
const maxEntries = 64;

/** The proxies in front of the gateway: networks, or the names of some. */
export const trustedProxies = z
  .array(networkOr(...namedNetworks.keys()))
  .max(maxEntries)
  .superRefine((proxies, context) => {
    for (const [index, text] of proxies.entries())
      if (text.endsWith('/0'))
        context.addIssue({
          code: 'custom',
          path: [index],
          message:
            'every client would be a trusted proxy, and could claim any address: list the proxies alone',
        });
  });

/** The networks of such a list, with those that the names stand for. */
export function networksOf(proxies: readonly string[]): readonly string[] {
  return proxies.flatMap((text) => namedNetworks.get(text) ?? [text]);
}

const expectedOrigin = 'expected an origin such as https://app.example.com';

/** The origin of a web page, exactly as browsers send it. */
const origin = z.string().superRefine((text, context) => {
  const message = describeOriginFault(text);
  if (message !== null) context.addIssue({ code: 'custom', message });
});

function describeOriginFault(text: string): string | null {
  if (text === '*') return null;
  if (text === 'null') return `${expectedOrigin}: null is the origin of any local file and sandboxed frame`;
  if (text.includes('*')) return `${expectedOrigin}: a star stands for every origin, and is written alone`;
  const url = URL.parse(text);
  if (!/^[a-z][a-z0-9+.-]*:\/\/[^/?#\s]/i.test(text) || url === null)
    return `${expectedOrigin}, with its scheme`;
  if (url.username !== '' || url.password !== '') return `${expectedOrigin}, without a user and password`;
  // The schemes of apps, such as `capacitor:`, have no origin in the standard, but a form of their own.
  const exact = url.origin === 'null' ? `${url.protocol}//${url.host}` : url.origin;
  return text === exact ? null : `expected the origin as browsers send it: write ${exact}`;
}

/** The web pages that may call the gateway from browsers. */
export const corsOrigins = z
  .array(origin)
  .max(maxEntries)
  .refine(
    (origins) => origins.length < 2 || !origins.includes('*'),
    "expected '*' alone: it stands for every origin",
  );

/** The longest line on where to ask for a key, in characters. */
const maxContactLength = 200;

/** Where to ask for a key: one line of text, or an address. */
export const contact = z
  .string()
  .trim()
  .min(1)
  .max(maxContactLength)
  .regex(/^[^\p{Cc}\p{Cf}]*$/u, 'expected one line of text');
