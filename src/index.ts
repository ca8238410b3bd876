/** The public names of the package. */
// oxlint-disable-next-line import/no-unassigned-import -- it has to run before the other imports
import './shared/require-node.ts';
export { createGateway } from './gateway.ts';
export type { Gateway, GatewayOptions } from './gateway.ts';
export { ConfigError } from './config/load.ts';
export type { ConfigInput } from './config/schema/schema.ts';
export type {
  CreditResult,
  GatewayStatus,
  IssuedKey,
  Key,
  KeyChanges,
  KeyGroup,
  KeyPayment,
  KeyQuery,
  KeyRotation,
  Keys,
  KeySettings,
  Page,
  RecordQuery,
  Records,
  RunningRequest,
  StatusQuery,
  UsageQuery,
  UsageRecord,
  UsageSums,
} from './composition/management.ts';
export type { Clock } from './domain/ports/clock.ts';
export type { NodeHandler } from './http/standalone.ts';
export { GatewayError } from './shared/errors.ts';
export type { ErrorCode } from './shared/errors.ts';
export type { LogFormat, LogLevel } from './telemetry/log/logger.ts';
