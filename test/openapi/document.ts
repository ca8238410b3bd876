import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { answerSchemas } from './answer-schemas.ts';
import { contractSchemas } from './contract-schemas.ts';
import { operatorSchemas } from './operator-schemas.ts';
import { adminPaths, publicPaths } from './paths.ts';

const root = join(import.meta.dirname, '..', '..');

/** The document for all listeners, in OpenAPI 3.1: of the contract, the schemas of the admin API and the error codes. */
export function openApiDocument(): object {
  const { version, description } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    version: string;
    description: string;
  };
  const clients = { url: 'http://127.0.0.1:8080', description: 'The listener for clients.' };
  const operators = { url: 'http://127.0.0.1:8081', description: 'The listener for operators.' };
  const serversOf = (path: string): readonly object[] =>
    path === '/healthz' || path === '/readyz' ? [clients, operators] : [operators];
  return {
    openapi: '3.1.0',
    info: {
      title: 'textgate',
      version,
      description,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [clients],
    security: [{ bearer: [] }],
    paths: {
      ...publicPaths,
      ...Object.fromEntries(
        Object.entries(adminPaths).map(([path, item]) => [path, { servers: serversOf(path), ...item }]),
      ),
    },
    components: {
      securitySchemes: {
        bearer: {
          type: 'http',
          scheme: 'bearer',
          description:
            'An API key on the listener for clients, the admin token or the read-only token on that for operators.',
        },
        session: {
          type: 'apiKey',
          in: 'cookie',
          name: 'textgate-session-8081',
          description:
            'The session of a browser on the listener for operators, which counts for /admin, too. The name ends with the port, and begins with `__Host-` over TLS.',
        },
      },
      schemas: { ...contractSchemas(), ...answerSchemas, ...operatorSchemas },
    },
  };
}
