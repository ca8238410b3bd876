import type { Subject } from './subject.ts';

/** No proxy at all: what the simulated upstream and the load generator take themselves. */
export const direct: Subject = {
  name: 'direct',
  isTextgate: false,
  only: null,
  start: async ({ simulatorPort }) => ({
    port: simulatorPort,
    headers: {},
    failoverHeaders: null,
    pid: null,
    commandLine: null,
    databaseFile: null,
    startMs: 0,
    shared: null,
    close: async () => {},
  }),
};
