import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { checkConfig } from '../../src/config/load.ts';
import { proxyOf, readProxyEnvironment } from '../../src/config/proxy-environment.ts';
import { proxyAuthorization, readProxyUrl } from '../../src/config/schema/proxy-values.ts';
import { redactedConfig, showConfig } from '../../src/config/show-config.ts';
import { makeAuthority } from '../support/certificates.ts';
import { makeTemporaryFolder } from '../support/temporary-folder.ts';

const check = (local: object) =>
  checkConfig(
    { upstreams: { local: { url: 'https://model.test/v1', ...local } }, models: { from: 'local' } },
    'it',
  );

describe('the address of a proxy', () => {
  test.each([
    ['http://proxy.test:3128', 'http://proxy.test:3128/', null],
    ['proxy.test:3128', 'http://proxy.test:3128/', null],
    ['https://proxy.test', 'https://proxy.test/', null],
    ['http://me:p%40ss%3A@proxy.test:3128/', 'http://me:p%40ss%3A@proxy.test:3128/', 'me:p@ss:'],
    ['http://me@proxy.test', 'http://me@proxy.test/', 'me:'],
  ])('%s is read', (text, href, credentials) => {
    const url = readProxyUrl(text);
    if (!(url instanceof URL)) throw new Error(url);
    expect(url.href).toBe(href);
    const expected = credentials === null ? null : `Basic ${Buffer.from(credentials).toString('base64')}`;
    expect(proxyAuthorization(url)).toBe(expected);
  });

  test.each([
    ['socks5://secret-word@proxy.test', 'SOCKS is not supported'],
    ['ftp://secret-word@proxy.test', 'expected the address of an HTTP proxy'],
    ['http://secret-word@proxy.test/path', 'without a path'],
    ['http://secret-word@proxy.test/?x', 'without a path'],
    ['http://secret word', 'expected the address of an HTTP proxy'],
    ['http://secret-word:%zz@proxy.test', 'with an encoded user and password'],
    ['http://secret-word@169.254.169.254:80', 'not a link-local address'],
    ['', 'expected the address of an HTTP proxy'],
  ])('%s is refused without being quoted', (text, message) => {
    expect(() => check({ proxy: text })).toThrow(message);
    expect(() => check({ proxy: text })).toThrow(/^(?!.*secret)/s);
  });
});

describe('the proxy of an upstream', () => {
  const named = (environment: Record<string, string>, url: string, proxy?: URL | 'none') => {
    const found = proxyOf({ url: new URL(url), proxy }, 'the setting', readProxyEnvironment(environment));
    return found === null ? null : `${found.url.host} of ${found.name}`;
  };

  test('is that of the variable for its scheme, in lower case first', () => {
    const all = { HTTPS_PROXY: 'one.test:1', HTTP_PROXY: 'two.test:2', ALL_PROXY: 'three.test:3' };
    expect(named(all, 'https://model.test')).toBe('one.test:1 of HTTPS_PROXY');
    expect(named(all, 'http://model.test')).toBe('two.test:2 of HTTP_PROXY');
    expect(named({ ...all, https_proxy: 'four.test:4' }, 'https://model.test')).toBe(
      'four.test:4 of https_proxy',
    );
    expect(named({ all_proxy: 'five.test:5' }, 'http://model.test')).toBe('five.test:5 of all_proxy');
    expect(named({ HTTPS_PROXY: ' ' }, 'https://model.test')).toBeNull();
    expect(named({}, 'https://model.test')).toBeNull();
  });

  test('is none for an exception, unless its own setting names one', () => {
    const all = { HTTPS_PROXY: 'one.test:1', NO_PROXY: 'model.test' };
    expect(named(all, 'https://model.test')).toBeNull();
    expect(named({ ...all, no_proxy: 'other.test' }, 'https://model.test')).toBe('one.test:1 of HTTPS_PROXY');
    expect(named(all, 'https://model.test', new URL('http://own.test:9'))).toBe('own.test:9 of the setting');
    expect(named(all, 'https://other.test', 'none')).toBeNull();
  });

  test('is not that of the environment for this machine, unless its own setting names one', () => {
    const all = { ALL_PROXY: 'one.test:1' };
    for (const url of ['http://127.0.0.1:8000', 'http://localhost:8000', 'http://[::1]:8000']) {
      expect(named(all, url)).toBeNull();
      expect(named(all, url, new URL('http://own.test:9'))).toBe('own.test:9 of the setting');
    }
  });

  test('is shown without its password', () => {
    const config = check({ proxy: 'http://me:secret-word@proxy.test:3128' });
    for (const shown of [showConfig(config), JSON.stringify(redactedConfig(config))]) {
      expect(shown).toContain('proxy.test:3128');
      expect(shown).not.toContain('secret-word');
    }
    expect(showConfig(check({ proxy: 'none' }))).toContain('proxy: none');
  });
});

describe('the certificates of an upstream', () => {
  const faultOf = (settings: object): string => {
    try {
      check(settings);
      return '';
    } catch (error) {
      return (error as Error).message;
    }
  };
  const write = (text: string): string => {
    const file = join(makeTemporaryFolder(), 'file.pem');
    writeFileSync(file, text);
    return file;
  };

  test('must be files that can be used: the message of a fault names the setting', () => {
    const authority = makeAuthority();
    const { cert, key } = authority.issue('gateway');
    const ca = authority.cert;
    expect(faultOf({ tls: { ca, cert, key, serverName: 'model.internal' } })).toBe('');
    const broken = write('-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n');
    const faults = [
      [{ ca: '/nowhere/ca.pem' }, 'tls.ca: there is no such file'],
      [{ ca: makeTemporaryFolder() }, 'tls.ca: this is a folder, and not a file'],
      [{ ca: key }, 'tls.ca: the file holds a private key and no certificate'],
      [{ ca: broken }, "tls.ca: a certificate of the file can't be read"],
      [{ cert }, 'tls.key: cert and key go together'],
      [{ key }, 'tls.cert: cert and key go together'],
      [{ cert, key: authority.key }, 'tls.key: this key does not belong to the certificate of cert'],
      [{ cert, key: write('no key') }, 'tls.key: expected a private key in PEM'],
      [{ serverName: 'model internal' }, 'tls.serverName: expected a host name'],
      [{ insecure: true }, 'tls.insecure'],
    ] as const;
    for (const [tls, message] of faults) expect(faultOf({ tls })).toContain(message);
  });

  test('are for upstreams with TLS only', () => {
    expect(faultOf({ url: 'http://model.test/v1', tls: {} })).toContain(
      'only where the url begins with https://',
    );
  });
});
