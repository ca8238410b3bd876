import { describe, expect, test } from 'vitest';
import { isLocalHost, readProxyExceptions } from '../../src/config/proxy-environment.ts';

const isException = (list: string, url: string): boolean => readProxyExceptions(list)(new URL(url));

describe('a list of hosts without a proxy', () => {
  test.each([
    ['*', 'https://any.example'],
    ['model.example', 'https://model.example/v1'],
    ['Model.Example', 'https://model.example'],
    ['model.example.', 'https://model.example'],
    ['model.example', 'https://model.example.'],
    ['model.example', 'https://eu.model.example'],
    ['.model.example', 'https://eu.model.example'],
    ['.model.example', 'https://model.example'],
    ['*.model.example', 'https://eu.model.example'],
    ['a.example, model.example', 'https://model.example'],
    ['a.example model.example', 'https://model.example'],
    ['model.example:443', 'https://model.example'],
    ['model.example:8443', 'https://model.example:8443'],
    ['model.example:80', 'http://model.example'],
    ['10.0.0.0/8', 'http://10.1.2.3:8000'],
    ['10.1.2.3', 'http://10.1.2.3:8000'],
    ['10.1.2.3:8000', 'http://10.1.2.3:8000'],
    ['0.0.0.0/0', 'http://10.1.2.3'],
    ['fd00::/8', 'http://[fd12::1]:8000'],
    ['fd12::1', 'http://[fd12::1]'],
    ['[fd12::1]', 'http://[fd12::1]'],
    ['[fd12::1]:8000', 'http://[fd12::1]:8000'],
  ])('%s has %s', (list, url) => {
    expect(isException(list, url)).toBe(true);
  });

  test.each([
    ['', 'https://model.example'],
    [',', 'https://model.example'],
    ['.', 'https://model.example'],
    ['model.example', 'https://remodel.example'],
    ['model.example', 'https://model.example.evil.test'],
    ['model.example:8443', 'https://model.example'],
    ['model.example:443', 'http://model.example'],
    ['10.0.0.0/8', 'http://11.1.2.3'],
    ['10.0.0.0/40', 'http://10.1.2.3'],
    ['10.0.0.0/x', 'http://10.1.2.3'],
    ['10.0.0.0/8', 'http://10.example'],
    ['0.0.0.0/0', 'http://[fd12::1]'],
    ['fd12::1', 'http://[fd12::2]'],
    ['[fd12::1]:8001', 'http://[fd12::1]:8000'],
  ])('%s does not have %s', (list, url) => {
    expect(isException(list, url)).toBe(false);
  });
});

describe('this machine', () => {
  test.each(['localhost', 'localhost.', 'model.localhost', '127.0.0.1', '127.8.9.1', '[::1]'])(
    'is %s',
    (host) => {
      expect(isLocalHost(host)).toBe(true);
    },
  );

  test.each(['localhost.example', 'mylocalhost', '128.0.0.1', '[::2]', '0.0.0.0'])('is not %s', (host) => {
    expect(isLocalHost(host)).toBe(false);
  });
});
