import type { Migration } from '../../migration.ts';

/**
 * The shares of processes in the limits of upstreams. A version without this step keeps no such limits: they are set when all
 * nodes have this one.
 */
export const roomShares: Migration = {
  number: 13,
  runsWith: 6,
  name: 'shares of the limits of upstreams',
  statements: [
    `CREATE TABLE room_shares (
       upstream TEXT COLLATE "C" NOT NULL,
       limit_name TEXT COLLATE "C" NOT NULL,
       owner TEXT COLLATE "C" NOT NULL,
       turn BIGINT NOT NULL,
       most BIGINT NOT NULL,
       share BIGINT NOT NULL,
       needs BIGINT NOT NULL,
       wants BIGINT NOT NULL,
       lost_at BIGINT,
       PRIMARY KEY (upstream, limit_name, owner)
     ) WITH (fillfactor = 50)`,
  ],
};
