import { defaultAdminPort, defaultHost, defaultPort } from '../../config/default-addresses.ts';
import type { Config } from '../../config/schema/schema.ts';
import type { FetchedModelList } from '../../models/model-discovery.ts';
import { escapeControlCharacters } from '../../shared/control-characters.ts';
import { isCheckout } from '../../shared/version.ts';
import { maxColumns, wrap } from '../output.ts';
import { reachable } from '../addresses.ts';

/** How operators call the command. */
export const command = isCheckout ? 'npm run textgate --' : 'textgate';

/** What the greeting of a started gateway says. */
interface StartedGateway {
  readonly url: string;
  readonly adminUrl: string;
  /** The file of the admin token, if it was generated; `null` if the operator set the token. */
  readonly tokenFile: string | null;
  /** The names of the keys that the config and the environment declare. */
  readonly declared: readonly string[];
  /** The first key, if it was made now. */
  readonly key: string | null;
  readonly hasActiveKey: boolean;
  /** Whether the built-in demo answers because nothing else was configured. */
  readonly isDemo: boolean;
}

/** The first lines of a started gateway: its addresses, its keys, and how to use them. */
export function greeting(started: StartedGateway): string {
  const { url, adminUrl, tokenFile, declared, key, hasActiveKey, isDemo } = started;
  const token = tokenFile === null ? 'the admin token' : `the token in ${tokenFile}`;
  const lines = [
    `textgate serves ${url}/v1 (admin: ${adminUrl})`,
    `console: ${reachable(adminUrl)}/console/ (log in with ${token})`,
  ];
  const usual = `http://${defaultHost}:${defaultAdminPort}`;
  const where = adminUrl === usual ? '' : `TEXTGATE_ADMIN_URL=${reachable(adminUrl)} `;
  if (isDemo) lines.push('models: demo (built in); set TEXTGATE_UPSTREAM_URL for a real server');
  if (declared.length > 0) lines.push(`keys declared: ${declared.map(escapeControlCharacters).join(', ')}`);
  if (key !== null) return [...lines, ...firstSteps(key, reachable(url))].join('\n');
  const purpose = hasActiveKey ? 'create another key with:' : 'no active key is left; create one with:';
  return [...lines, withCommand(purpose, `${where}${command} keys create <name>`)].join('\n');
}

/** Whether nothing but the built-in demo answers. */
export function usesDemo({ upstreams }: Config): boolean {
  return Object.values(upstreams).every(({ url }) => url.protocol === 'demo:');
}

/** A command behind its purpose, or below it where one line would be too long. */
function withCommand(purpose: string, line: string): string {
  return purpose.length + 1 + line.length <= maxColumns ? `${purpose} ${line}` : `${purpose}\n  ${line}`;
}

/** What is said of the models that the upstream lists; `isLogged` leaves out a problem that the log shows already. */
export function describeList({ upstream, count, problem }: FetchedModelList, isLogged: boolean): string {
  const found =
    count > 0 || problem === null
      ? `models: ${count} of ${upstream}`
      : `models: none yet; the list of ${upstream} is fetched again for later requests`;
  const why = problem === null || isLogged ? [] : wrap(problem, maxColumns - 2);
  return [found, ...why.map((line) => `  ${line}`)].join('\n');
}

/** The first key, and how to give it to a client. A unix socket has no address for clients: the proxy at it has one. */
function firstSteps(secret: string, url: string): readonly string[] {
  const shown = ['', 'This is your first key. It is shown only once:', `  ${secret}`, ''];
  if (socketOf(url) !== null) return shown;
  return [
    ...shown,
    'Point any OpenAI client at it:',
    `  export OPENAI_BASE_URL=${url}/v1`,
    `  export OPENAI_API_KEY=${secret}`,
    '',
  ];
}

/** A command for the first request, ready to be pasted into a shell. */
export function firstRequest(secret: string, model: string, url: string): string {
  const body = JSON.stringify({ model, stream: true, messages: [{ role: 'user', content: 'Say hello' }] });
  const usual = `http://${defaultHost}:${defaultPort}`;
  const where = url === usual ? '' : `TEXTGATE_URL=${url} `;
  return [
    'Or try it:',
    `  curl -N ${curlTarget(url)}/v1/chat/completions -H 'Authorization: Bearer ${secret}' -H 'Content-Type: application/json' -d '${body}'`,
    ...(socketOf(url) === null ? [`  ${where}TEXTGATE_API_KEY=${secret} ${command} say "Say hello"`] : []),
    '',
  ].join('\n');
}

/** The arguments with which curl calls an address, which may be one at a unix socket. */
function curlTarget(url: string): string {
  const at = socketOf(url);
  return at === null ? url : `--unix-socket ${at.socket} ${at.scheme}://localhost${at.basePath}`;
}

/** The parts of an address such as `http://unix:/run/textgate.sock:/llm`; `null` for one at a port. */
function socketOf(
  url: string,
): { readonly scheme: string; readonly socket: string; readonly basePath: string } | null {
  const [, scheme, socket, basePath] = /^(https?):\/\/unix:(.*):(\/.*|)$/.exec(url) ?? [];
  return scheme === undefined || socket === undefined || basePath === undefined
    ? null
    : { scheme, socket, basePath };
}
