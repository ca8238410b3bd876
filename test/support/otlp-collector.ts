import { createServer } from 'node:http';
import type { IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';

type AttributeValue = string | number | readonly string[];

/** A received span, in plain values. */
export interface CollectedSpan {
  readonly name: string;
  /** 1 internal, 2 server, 3 client. */
  readonly kind: number;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | undefined;
  readonly traceState: string | undefined;
  /** Nanoseconds since 1970. */
  readonly start: bigint;
  readonly end: bigint;
  readonly attributes: Readonly<Record<string, AttributeValue>>;
  readonly failed: boolean;
}

/** An OpenTelemetry collector on loopback that receives spans as JSON over HTTP. */
export interface OtlpCollector {
  readonly url: string;
  readonly spans: readonly CollectedSpan[];
  /** All bytes ever received, unparsed. */
  readonly bodies: readonly string[];
  readonly headers: readonly IncomingHttpHeaders[];
  /** The resource attributes of the sender. */
  readonly resource: Readonly<Record<string, AttributeValue>>;
  /** Sets the status of further answers; `null` leaves requests unanswered. */
  status: number | null;
  close(): Promise<void>;
}

interface Attribute {
  readonly key: string;
  readonly value: {
    readonly stringValue?: string;
    readonly intValue?: number;
    readonly arrayValue?: { readonly values: readonly { readonly stringValue: string }[] };
  };
}

interface WireSpan extends Omit<CollectedSpan, 'attributes'> {
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly Attribute[];
  readonly status: { readonly code?: number };
}

interface Payload {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly Attribute[] };
    readonly scopeSpans: readonly { readonly spans: readonly WireSpan[] }[];
  }[];
}

export async function startCollector(): Promise<OtlpCollector> {
  const bodies: string[] = [];
  const headers: IncomingHttpHeaders[] = [];
  const spans: CollectedSpan[] = [];
  let resource: OtlpCollector['resource'] = {};
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString('utf8');
      bodies.push(body);
      headers.push(request.headers);
      if (request.method !== 'POST' || request.url !== '/v1/traces') return response.writeHead(404).end();
      if (collector.status === null) return;
      response.writeHead(collector.status, { 'content-type': 'application/json' }).end('{}');
      if (collector.status !== 200) return;
      for (const { resource: sender, scopeSpans } of (JSON.parse(body) as Payload).resourceSpans) {
        resource = readAttributes(sender.attributes);
        spans.push(...scopeSpans.flatMap((scope) => scope.spans.map(readSpan)));
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const collector: OtlpCollector = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    bodies,
    headers,
    get resource() {
      return resource;
    },
    status: 200,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return collector;
}

function readSpan(span: WireSpan): CollectedSpan {
  const { name, kind, traceId, spanId, traceState } = span;
  return {
    name,
    kind,
    traceId,
    spanId,
    parentSpanId: span.parentSpanId,
    traceState,
    start: BigInt(span.startTimeUnixNano),
    end: BigInt(span.endTimeUnixNano),
    attributes: readAttributes(span.attributes),
    failed: span.status.code === 2,
  };
}

function readAttributes(attributes: readonly Attribute[]): Record<string, AttributeValue> {
  return Object.fromEntries(
    attributes.map(({ key, value: { stringValue, intValue, arrayValue } }) => [
      key,
      stringValue ?? intValue ?? arrayValue?.values.map((value) => value.stringValue) ?? '',
    ]),
  );
}
