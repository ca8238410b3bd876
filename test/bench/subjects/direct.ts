import type { Subject } from './subject.ts';

/** No proxy at all: what the simulated upstream and the load generator take themselves. */
export const direct: Subject = {
  name: 'direct',
  isTextgate: false,
  start: async ({ simulatorPort }) => ({
    port: simulatorPort,
    headers: {},
    failoverHeaders: null,
    pid: null,
    commandLine: null,
    startMs: 0,
    close: async () => {},
  }),
};
