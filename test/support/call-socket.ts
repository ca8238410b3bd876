import { request } from 'node:http';

/** Sends a request through a unix socket, on a connection of its own; resolves with the status and the body. */
export function call(
  socketPath: string,
  path: string,
  key = '',
  body?: object,
): Promise<readonly [status: number | undefined, text: string]> {
  return new Promise((resolve, reject) => {
    const sent = request(
      {
        socketPath,
        path,
        agent: false,
        method: body === undefined ? 'GET' : 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      },
      (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (part: string) => (text += part));
        response.on('end', () => resolve([response.statusCode, text]));
      },
    );
    sent.on('error', reject);
    sent.end(body === undefined ? undefined : JSON.stringify(body));
  });
}
