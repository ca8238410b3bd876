import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../../support/free-port.ts';
import { startServer } from './start-server.ts';
import type { Subject } from './subject.ts';

/** Where Debian's package has the program. */
const program = '/usr/sbin/nginx';

/** nginx that passes all bytes on as they come: the least that a proxy can do. */
export const nginx: Subject = {
  name: 'nginx',
  isTextgate: false,
  only: null,
  async start({ simulatorPort, folder, openFiles }) {
    if (!existsSync(program)) throw new Error(`${program} is not installed`);
    const port = await freePort();
    mkdirSync(join(folder, 'temp'), { recursive: true });
    writeFileSync(join(folder, 'nginx.conf'), configOf(port, simulatorPort, openFiles ?? 20_000));
    return startServer({
      program,
      args: ['-p', folder, '-c', 'nginx.conf', '-e', 'error.log'],
      options: { cwd: folder, openFiles },
      port,
    });
  },
};

/** One worker, as the others have one process; connections to the upstream are kept, as the others keep them. */
function configOf(port: number, upstreamPort: number, openFiles: number): string {
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
  return `
daemon off;
worker_processes 1;
worker_rlimit_nofile ${openFiles};
pid nginx.pid;
events { worker_connections ${openFiles}; }
http {
  access_log access.log;
${paths.map((path) => `  ${path}_temp_path temp/${path};`).join('\n')}
  keepalive_requests 1000000000;
  client_max_body_size 2m;
  upstream simulator { server 127.0.0.1:${upstreamPort}; keepalive 1024; keepalive_requests 1000000000; }
  server {
    listen 127.0.0.1:${port} backlog=4096;
    location / {
      proxy_pass http://simulator;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
      proxy_request_buffering off;
    }
  }
}
`;
}
