import {
  badHosts,
  goodHosts,
  goodElsewhere,
  badVersions,
  badTargets,
  oddTargets,
  unknownMethods,
  otherMethods,
} from './head-forms.ts';
import { hiddenRequest, makeCase } from './raw-case.ts';
import type { RawCase, RawTable, Subject } from './raw-case.ts';

/** The headers of requests whose host is wrong. */
const wrongHostLines: readonly (readonly string[])[] = [
  ...badHosts.map((host) => [`Host: ${host}`]),
  ['Host: localhost', 'Host: localhost'],
  ['Host: localhost', 'host: x'],
  ['Host: localhost', 'Host:'],
];

/** Cases of the first line and of the host. */
export function headTables(subjects: readonly Subject[]): readonly RawTable[] {
  const of = (make: (subject: Subject) => readonly RawCase[]): readonly RawCase[] => subjects.flatMap(make);
  const eachVersion = ['HTTP/1.1', 'HTTP/1.0'];
  return [
    {
      title: 'a wrong Host is refused with 400',
      cases: of((subject) =>
        eachVersion.flatMap((version) =>
          wrongHostLines.map((host) =>
            makeCase(subject, `${version} ${JSON.stringify(host)}`, { version, host }, 400),
          ),
        ),
      ),
    },
    {
      title: 'a missing Host is refused with 400 in HTTP/1.1, and fine in HTTP/1.0',
      cases: of((subject) => [
        makeCase(subject, 'no Host', { host: [], behind: hiddenRequest(subject) }, 400),
        makeCase(subject, 'no Host in 1.0', { version: 'HTTP/1.0', host: [] }, 'success'),
      ]),
    },
    {
      title: 'every form of a good Host is served',
      cases: of((subject) =>
        [...goodHosts, ...(subject.isAdmin ? [] : goodElsewhere)].flatMap((host) => [
          makeCase(subject, `Host ${host}`, { host: [`Host: ${host}`] }, 'success'),
          makeCase(subject, `Host ${host} with blanks`, { host: [`hOST:\t ${host} \t`] }, 'success'),
        ]),
      ),
    },
    {
      title: 'a request line without a version of HTTP/1 is refused with 400',
      cases: of((subject) => [
        ...badVersions.map((version) =>
          makeCase(subject, `version ${JSON.stringify(version)}`, { version }, 400),
        ),
        makeCase(subject, 'the preface of HTTP/2', { edit: () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n' }, 400),
        makeCase(subject, 'no version', { edit: (head) => head.replace(' HTTP/1.1', '') }, 400),
        // Node's parser takes GET and POST over RTSP, and does not say so.
        makeCase(subject, 'RTSP', { version: 'RTSP/1.0' }, 'no server error'),
      ]),
    },
    {
      title: 'HTTP/1.0 is served',
      cases: of((subject) => [
        makeCase(subject, '1.0', { version: 'HTTP/1.0' }, 'success'),
        makeCase(
          subject,
          '1.0 that would stay',
          { version: 'HTTP/1.0', lines: ['Connection: keep-alive'] },
          'success',
        ),
      ]),
    },
    {
      title: 'a target that names no path is refused',
      cases: of((subject) =>
        badTargets.map((target) =>
          makeCase(subject, `target ${target.slice(0, 40)}`, { target }, target.length > 1_000 ? 413 : 400),
        ),
      ),
    },
    {
      title: 'an odd path is answered, and never with a fault',
      cases: of((subject) =>
        oddTargets.map((target) =>
          makeCase(subject, `target ${target.slice(0, 40)}`, { target }, 'no server error'),
        ),
      ),
    },
    {
      title: 'the authority of an absolute target is ignored',
      cases: of((subject) =>
        ['http://other.example', 'https://other.example:1', 'HTTP://[::1]:9', 'hTTps://a_b'].map(
          (authority) => makeCase(subject, authority, { target: authority + subject.path }, 'success'),
        ),
      ),
    },
    {
      title: 'TRACE and CONNECT are refused with 405, and open no tunnel',
      cases: of((subject) => [
        makeCase(subject, 'TRACE', { method: 'TRACE' }, 405),
        makeCase(
          subject,
          'CONNECT',
          { method: 'CONNECT', target: 'localhost:80', behind: hiddenRequest(subject) },
          405,
        ),
        makeCase(subject, 'CONNECT to a path', { method: 'CONNECT' }, 'client error'),
      ]),
    },
    {
      title: 'an unknown method is refused with 400, and another than the path’s never ends in a fault',
      cases: of((subject) => [
        ...unknownMethods.map((method) =>
          makeCase(subject, `method ${JSON.stringify(method)}`, { method }, 400),
        ),
        ...otherMethods.map((method) => makeCase(subject, `method ${method}`, { method }, 'no server error')),
      ]),
    },
  ];
}
