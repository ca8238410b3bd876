import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { callAdmin, openAdmin } from '../../src/cli/admin-client.ts';
import { findAdminListener } from '../../src/cli/find-gateway.ts';
import { findKeyId } from '../../src/cli/keys/find-key.ts';
import { maxPageSize } from '../../src/domain/ports/records.ts';
import { startUpstream } from '../support/scripted-upstream.ts';

afterEach(() => {
  vi.unstubAllEnvs();
});

function setGateway(url: string, token: string): void {
  vi.stubEnv('TEXTGATE_ADMIN_URL', url);
  vi.stubEnv('TEXTGATE_ADMIN_TOKEN', token);
}

describe('a command that calls the gateway', () => {
  test.each(['not-a-url', '127.0.0.1:8081', 'ftp://127.0.0.1', 'http://'])(
    'refuses the address %s by the name of its variable',
    async (url) => {
      setGateway(url, 'any');
      const problem =
        'TEXTGATE_ADMIN_URL: expected http:// or https:// before the host, as in http://127.0.0.1:8081';
      await expect(callAdmin('GET', '/admin/keys')).rejects.toThrow(problem);
      await expect(openAdmin('/admin/backup')).rejects.toThrow(problem);
    },
  );

  test.each([
    'http://admin:hunter2@127.0.0.1:1',
    'http://hunter2@127.0.0.1:1',
    'https://:hunter2@127.0.0.1:1',
  ])('refuses an address with a user or a password, and quotes neither', async (url) => {
    setGateway(url, 'any');
    const problem =
      /^TEXTGATE_ADMIN_URL: expected no user and no password in the address: the token says who calls$/;
    await expect(callAdmin('GET', '/admin/keys')).rejects.toThrow(problem);
    await expect(openAdmin('/admin/backup')).rejects.toThrow(problem);
    await expect(findAdminListener()).rejects.toThrow(problem);
  });

  test.each(['first\nsecond', 'two words', 'tökén'])(
    'refuses the admin token %j, which no header can hold, and does not quote it',
    async (token) => {
      setGateway('http://127.0.0.1:1', token);
      const problem =
        /^the admin token in TEXTGATE_ADMIN_TOKEN is not valid: expected printable ASCII without blanks$/;
      await expect(callAdmin('GET', '/admin/keys')).rejects.toThrow(problem);
      await expect(openAdmin('/admin/backup')).rejects.toThrow(problem);
    },
  );
});

describe('a server that is no gateway', () => {
  async function startServer(status: number, body: string): Promise<string> {
    const server = await startUpstream();
    onTestFinished(() => server.close());
    server.play((response) => void response.writeHead(status).end(body));
    const url = new URL(server.url).origin;
    setGateway(url, 'any');
    return url;
  }

  test.each([404, 502])('is named with the variable where it refuses with %i and no JSON', async (status) => {
    const url = await startServer(status, '<html>not here</html>');
    const problem = `${url} is not the admin listener of a gateway: set TEXTGATE_ADMIN_URL to its address`;
    await expect(callAdmin('GET', '/admin/keys')).rejects.toThrow(problem);
    await expect(openAdmin('/admin/backup')).rejects.toThrow(problem);
  });

  test.each(['null', '{}', '"no"'])('is refused by its status where it says only %s', async (body) => {
    await startServer(503, body);
    await expect(callAdmin('GET', '/admin/keys')).rejects.toThrow(/^status 503\.$/);
    await expect(openAdmin('/admin/backup')).rejects.toThrow(/^status 503\.$/);
  });
});

describe('a name of a key', () => {
  /** A gateway with this many keys, of which the newest is bob. */
  async function withKeys(count: number): Promise<void> {
    const upstream = await startUpstream();
    upstream.play((response, { path }) => {
      const query = new URL(path, 'http://gateway').searchParams;
      const from = Number(query.get('before') ?? 0);
      const to = Math.min(from + Number(query.get('limit') ?? maxPageSize), count);
      const data = Array.from({ length: to - from }, (_, index) => {
        const number = from + index;
        return { id: `key_${number}`, name: number === 0 ? 'bob' : `key ${number}`, revoked_at: null };
      });
      response.end(JSON.stringify({ data, next: to < count ? String(to) : null }));
    });
    setGateway(new URL(upstream.url).origin, 'any');
  }

  test('stands for the only key that has it', async () => {
    await withKeys(9_999);
    expect(await findKeyId('bob')).toBe('key_0');
  });

  test('is refused where older keys may have it, too, with the id of the one that was found', async () => {
    await withKeys(10_000);
    await expect(findKeyId('bob')).rejects.toThrow(
      'only the newest 10000 keys were searched, and older ones may be named bob, too; give the id of one of them: key_0',
    );
  });
});
