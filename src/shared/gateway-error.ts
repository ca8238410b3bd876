import { statusOf } from './errors.ts';
import type { ErrorCode, Refusal } from './errors.ts';

/** A refusal as the methods of a `Gateway` throw it, with the fields of the error that HTTP would answer with. */
export class GatewayError extends Error {
  override readonly name = 'GatewayError';
  readonly code: ErrorCode;
  /** The HTTP status of the code. */
  readonly status: number;
  /** The field that was wrong; `null` if none was. */
  readonly param: string | null;

  constructor({ code, message, param }: Refusal, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
    this.status = statusOf(code);
    this.param = param;
  }
}
