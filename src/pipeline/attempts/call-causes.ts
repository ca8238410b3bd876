import type { Failure, FailureKind } from '../../protocol/text.ts';
import type { Telemetry } from '../../domain/ports/telemetry.ts';
import type { UpstreamAnswer, UpstreamCall } from '../../domain/ports/upstreams.ts';
import { diagnose, diagnoseAnswer, sentencesOf } from '../../domain/diagnosis/diagnose.ts';
import type { FailedCall } from '../../domain/diagnosis/diagnose.ts';
import type { Route } from '../../domain/routing.ts';

/** One call of an upstream: names, for the operator, the causes of what goes wrong with it. */
export class CallCauses {
  readonly #route: Route;
  readonly #method: UpstreamCall['method'];
  readonly #path: string;
  readonly #telemetry: Telemetry;

  constructor(route: Route, { method, path }: Pick<UpstreamCall, 'method' | 'path'>, telemetry: Telemetry) {
    this.#route = route;
    // The call itself has the prompt, which must not be kept for as long as the answer takes.
    this.#method = method;
    this.#path = path;
    this.#telemetry = telemetry;
  }

  /** The cause of a fault or of an error status; `kind` is the kind of failure that the words of an answer show. */
  explain(result: FailedCall, kind?: FailureKind): string {
    return sentencesOf(diagnose(this.#diagnosed(), result, kind));
  }

  /** A failure that an answer with a good status showed, with its cause. */
  withCause(failure: Failure, answer: UpstreamAnswer): Failure {
    const found = diagnoseAnswer(this.#diagnosed(), answer, failure);
    return found === null ? failure : { ...failure, cause: sentencesOf(found) };
  }

  /** Reports implausible usage at the end of an answer. */
  reportImplausible(why: string): void {
    this.#telemetry.fault(
      'implausible usage from an upstream: counted instead',
      new Error(`${this.#route.upstream}: ${why}`),
    );
  }

  #diagnosed(): Parameters<typeof diagnose>[0] {
    return { method: this.#method, path: this.#path, target: this.#route.target };
  }
}
