import type { ConfigInput } from '../../src/index.ts';
import { plant } from './canaries.ts';
import { copyAuthority } from './certificates.ts';
import type { Authority, CertificateFiles } from './certificates.ts';
import { sayTexts, startUpstream } from './scripted-upstream.ts';
import type { ScriptedUpstream, Script } from './scripted-upstream.ts';
import { startGateway } from './test-gateway.ts';
import type { TestGateway, TestGatewayOptions } from './test-gateway.ts';
import { startTlsUpstream } from './tls-upstream.ts';
import type { TlsUpstream } from './tls-upstream.ts';

export type UpstreamInput = ConfigInput['upstreams'][string];

/** The user and the password of proxies that ask for them. */
export const [proxyUser, proxyPassword] = ['me', 'pass:word@of-the-proxy'];
plant(proxyPassword);

/** The address of a proxy on loopback with the user and password for it. */
export const proxyAddress = (port: number): string =>
  `http://${proxyUser}:${encodeURIComponent(proxyPassword)}@127.0.0.1:${port}`;

/** The kinds of upstreams that a gateway reaches in different ways. */
export const upstreamKinds = ['without TLS', 'with TLS'] as const;

/** What the scene's upstreams answer to a question for text, in whole answers and streams. */
export const wholeAnswer = { ending: 'stop', text: 'one two', usage: [11, 7], code: null };

/** An upstream with and one without TLS, which run the same script, and gateways that call them. */
export interface OutboundScene {
  readonly upstream: ScriptedUpstream;
  readonly secure: TlsUpstream;
  /** Has signed the certificate of the upstream with TLS, which accepts no client that it has not signed. */
  readonly authority: Authority;
  readonly client: CertificateFiles;
  /** What the gateways have logged. */
  log: string;
  /** What both upstreams answer; at first a list of models, tokens and texts. */
  play: Script;
  /** The settings of an upstream of a kind: its address, and its TLS. */
  reach(kind: (typeof upstreamKinds)[number]): UpstreamInput;
  /** Starts a gateway whose model is at an upstream, and which passes on the path `/tokenize`. */
  serve(local: UpstreamInput, options?: TestGatewayOptions): Promise<TestGateway>;
  close(): Promise<void>;
}

export async function startOutboundScene(): Promise<OutboundScene> {
  const script: Script = (response, request) => scene.play(response, request);
  const { authority, issued } = copyAuthority(['gateway', 'localhost']);
  const client = issued.gateway;
  const upstream = await startUpstream();
  upstream.play(script);
  const secure = await startTlsUpstream(issued.localhost, authority, script);
  const gateways: TestGateway[] = [];
  const scene: OutboundScene = {
    upstream,
    secure,
    authority,
    client,
    log: '',
    play(response, request) {
      if (request.path === '/tokenize') response.end('{"tokens":[1]}');
      else if (request.body === '') response.end('{"data":[{"id":"tiny"}]}');
      else void sayTexts(['one ', 'two'])(response, request);
    },
    reach: (kind) =>
      kind === 'without TLS'
        ? { url: upstream.url }
        : { url: secure.url, tls: { ca: authority.cert, ...client } },
    async serve(local, options = {}) {
      const gateway = await startGateway({
        upstreams: { local: { apiKey: 'sk-upstream-secret', ...local } },
        passthrough: [{ path: '/tokenize', upstream: 'local', free: true }],
        logDestination: { write: (line) => void (scene.log += line) },
        ...options,
      });
      gateways.push(gateway);
      return gateway;
    },
    async close() {
      for (const gateway of gateways) await gateway.close();
      await upstream.close();
      await secure.close();
    },
  };
  return scene;
}
