import { z } from 'zod';
import type { Check, UpstreamReport } from '../../doctor/report.ts';
import type { KnownUpstream } from '../../operations/known-upstreams.ts';
import type { ListedUpstream } from '../../operations/list-upstreams.ts';
import { writeEventFrame } from '../../protocol/sse.ts';
import { writeRefusal } from '../../protocol/answer-writer.ts';
import { isRefusal } from '../../shared/errors.ts';
import type { Refusal } from '../../shared/errors.ts';
import { storedText } from '../../shared/schema-values.ts';
import { streamHeaders } from '../answers/answer-headers.ts';
import { pathIdOf, readInput } from '../checked-input.ts';
import { presentCheck, presentDoctor } from '../present/doctor.ts';
import { presentList } from '../present/list.ts';
import { presentUpstream } from '../present/upstream.ts';
import { leaveSignalOf } from '../answers/respond.ts';
import { addRoutes } from '../route-table.ts';
import type { RouteAnswer } from '../route-table.ts';
import { createRouter, prefers } from '../router.ts';
import type { Request, Response, Router } from '../router.ts';
import { endWithProof } from './guard.ts';

/** How an upstream is to be examined. */
export interface DoctorRun {
  /** The model to ask; `null` for that of its first route, or the first one in its list. */
  readonly model: string | null;
  /** Ends the examination. */
  readonly signal: AbortSignal;
  /** Called with each check as it is done. */
  readonly onCheck: (done: Check) => void;
}

/** Examines an upstream by its name; `null` if the signal was raised. */
export type RunDoctor = (name: string, run: DoctorRun) => Promise<UpstreamReport | Refusal | null>;

/** The dependencies of the routes about upstreams. */
export interface UpstreamAdministration {
  /** What this process alone knows of the upstreams of the config in force. */
  own(): readonly KnownUpstream[];
  /** The same as all workers know it. */
  list(): Promise<readonly ListedUpstream[]>;
  readonly runDoctor: RunDoctor;
}

/** The longest name of a model, in characters. */
const maxModelLength = 256;

/** The body of an examination. */
export const examination = z.strictObject({ model: storedText.min(1).max(maxModelLength).optional() });

/** The routes under `/admin/upstreams`: the list, and the examination of one. */
export function createUpstreamRoutes(upstreams: UpstreamAdministration): Router {
  return addRoutes(createRouter(), {
    'GET /': async () => presentList((await upstreams.list()).map(presentUpstream), null),
    'POST /:id/doctor': async (request, response) => {
      endWithProof(request, response);
      const body = await readExamination(request, response);
      if (isRefusal(body)) return body;
      const { model = null } = body;
      const signal = leaveSignalOf(response);
      const run = (onCheck: DoctorRun['onCheck']): ReturnType<RunDoctor> =>
        upstreams.runDoctor(pathIdOf(request), { model, signal, onCheck });
      if (prefers(request, 'text/event-stream', 'json')) return streamExamination(response, run);
      const report = await run(() => {});
      return report === null || isRefusal(report) ? report : presentDoctor([report]);
    },
  });
}

/** Reads the body; a request without one asks for the usual model. */
async function readExamination(
  request: Request,
  response: Response,
): Promise<z.output<typeof examination> | Refusal> {
  const { 'content-length': length, 'transfer-encoding': encoding } = request.headers;
  if ((length === undefined || length === '0') && encoding === undefined) return {};
  return readInput(request, response, examination);
}

/** Sends each check as it is done, and then the report. What is refused before the first check is an HTTP error. */
async function streamExamination(
  response: Response,
  run: (onCheck: DoctorRun['onCheck']) => ReturnType<RunDoctor>,
): Promise<RouteAnswer> {
  const send = (name: string, data: string): void => {
    if (!response.headersSent)
      response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', ...streamHeaders });
    response.write(writeEventFrame(name, data));
  };
  const report = await run((done) => send('check', JSON.stringify(presentCheck(done))));
  if (report === null) return null;
  if (!isRefusal(report)) send('report', JSON.stringify(presentDoctor([report])));
  else if (response.headersSent) send('error', writeRefusal(report));
  else return report;
  response.end();
  return null;
}
