import type { GrantedQuota, UpstreamLimit, QuotaStore } from '../../../domain/ports/quotas.ts';
import type { Row } from '../../engine.ts';
import type { PostgresEngine } from '../engine.ts';
import { renewQuotas } from './quota-functions.ts';

/** Keeps the quotas of upstreams' limits in PostgreSQL. `owner` is the id under which this process has its lease. */
export function createQuotaStore(
  engine: Pick<PostgresEngine, 'callFunction'>,
  owner: () => string,
): QuotaStore {
  return {
    owner,
    async renew(turn, demands) {
      const values = [owner(), turn, JSON.stringify(demands)];
      return (await engine.callFunction(renewQuotas, owner(), values)).map(readGranted);
    },
  };
}

function readGranted(row: Row): GrantedQuota {
  return {
    upstream: String(row['of_upstream']),
    limit: row['of_limit'] as UpstreamLimit,
    quota: Number(row['own_quota']),
    target: Number(row['own_target']),
  };
}
