import type { GrantedShare, RoomLimit, RoomShareStore } from '../../../domain/ports/room-shares.ts';
import type { Row } from '../../engine.ts';
import type { PostgresEngine } from '../engine.ts';
import { settleShares } from './share-functions.ts';

/** Keeps the shares of upstreams' limits in PostgreSQL. `owner` is the id under which this process has its lease. */
export function createRoomShareStore(
  engine: Pick<PostgresEngine, 'callFunction'>,
  owner: () => string,
): RoomShareStore {
  return {
    owner,
    async settle(turn, demands) {
      const values = [owner(), turn, JSON.stringify(demands)];
      return (await engine.callFunction(settleShares, owner(), values)).map(readGranted);
    },
  };
}

function readGranted(row: Row): GrantedShare {
  return {
    upstream: String(row['of_upstream']),
    limit: row['of_limit'] as RoomLimit,
    share: Number(row['own_share']),
    target: Number(row['own_target']),
  };
}
