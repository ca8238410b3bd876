import { explainAnswer } from '../../src/domain/diagnosis/status-explanations.ts';
import { diagnose } from '../../src/domain/diagnosis/diagnose.ts';
import type { FailedCall } from '../../src/domain/diagnosis/diagnose.ts';
import type { FailureKind } from '../../src/protocol/text.ts';
import { localTarget } from './call-target.ts';

const fault = (code: string): FailedCall => ({ kind: 'fault', fault: 'unreachable', code });
const status = (code: number, contentType = 'application/json'): FailedCall => ({
  kind: 'answer',
  status: code,
  contentType,
});

/** The faults of the documentation's table, and the URL at which each is met. */
const faults: readonly (readonly [FailedCall, url?: string, hasKey?: boolean])[] = [
  [fault('ECONNREFUSED'), 'http://127.0.0.1:8000/v1'],
  [fault('ENOTFOUND')],
  [fault('EAI_AGAIN')],
  [fault('EHOSTUNREACH')],
  [fault('ETIMEDOUT')],
  [{ kind: 'fault', fault: 'total_timeout' }],
  [fault('ECONNRESET'), 'http://model.test/v1'],
  [fault('ERR_SSL_WRONG_VERSION_NUMBER')],
  [fault('HPE_INVALID_CONSTANT'), 'http://model.test/v1'],
  [fault('UND_ERR_HEADERS_OVERFLOW')],
  [fault('INTERIM_OVERFLOW')],
  [fault('CODING_UNKNOWN')],
  [fault('CODING_UNLABELLED')],
  [fault('CODING_BROKEN')],
  [fault('CODING_CUT')],
  [fault('CODING_TOO_LARGE')],
  [fault('DEPTH_ZERO_SELF_SIGNED_CERT')],
  [fault('UNABLE_TO_GET_ISSUER_CERT_LOCALLY')],
  [fault('CERT_HAS_EXPIRED')],
  [fault('ERR_TLS_CERT_ALTNAME_INVALID')],
  [fault('LINK_LOCAL_REFUSED')],
  [status(401)],
  [status(401), 'https://model.test/v1', false],
  [status(402)],
  [status(403)],
  [status(404), 'https://model.test'],
  [status(404)],
  [status(429)],
  [status(500)],
  [status(503)],
  [status(301)],
  [status(200, 'text/html')],
  [status(200)],
];

/** How answers with a good status break off. */
const brokenAnswers: readonly FailureKind[] = ['unfinished', 'truncated', 'empty'];

/** The documentation's table of faults: what the gateway says of each, in the words of `diagnose`. */
export function writeFaultTable(): string {
  const answers = brokenAnswers
    .map((kind) => explainAnswer({ kind, detail: '' }))
    .filter((row) => row !== null);
  const calls = faults.map(([result, url = 'https://model.test/v1', hasKey = true]) => {
    const target = localTarget(url, hasKey);
    const { cause, advice } = diagnose({ method: 'GET', path: '/models', target }, result);
    return { cause: cause.replace(`GET ${target.base}/models: `, ''), advice };
  });
  const rows = [...calls, ...answers].map(({ cause, advice }) =>
    `| ${cause} | ${advice} |`.replaceAll('<', '&lt;'),
  );
  return ['| cause | what to do |', '|---|---|', ...rows].join('\n');
}
