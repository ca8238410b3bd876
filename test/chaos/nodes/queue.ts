import { setTimeout as wait } from 'node:timers/promises';
import { keyOf } from '../numbered-upstream.ts';
import { checkBooks } from './check-books.ts';
import { ask } from './load.ts';
import { onSharedServer } from './scenario.ts';
import type { ScenarioOptions, ScenarioResult } from './scenario.ts';

const questions = 40;

/** The time from one question to the next, in milliseconds. */
const apartMs = 20;

/** How long each answer takes, in milliseconds: the queue grows all the while. */
const answerMs = 40;

/**
 * One slot, two gateways, and requests that wait for it: served in the order in which the database got them, and
 * before every request that was sent when they waited already, at whichever gateway.
 */
export async function queue({
  random,
  server,
  clockShiftsMs = [0, 0],
}: ScenarioOptions): Promise<ScenarioResult> {
  return onSharedServer({ random, server, clockShiftsMs }, async (cluster) => {
    await cluster.sql('CREATE TABLE kept_tickets (ticket BIGINT, request_id TEXT, at_ms FLOAT8)');
    await cluster.sql(
      `CREATE FUNCTION keep_ticket() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN
              INSERT INTO kept_tickets
                VALUES (NEW.ticket, NEW.request_id, extract(epoch FROM clock_timestamp()) * 1000);
              RETURN NULL;
            END $$`,
    );
    await cluster.sql(
      'CREATE TRIGGER keep_tickets AFTER INSERT ON waiting_requests FOR EACH ROW EXECUTE FUNCTION keep_ticket()',
    );
    const key = await cluster.createKey({ concurrency: 1, queueWait: '60s', answerMs: () => answerMs });
    const sent: Promise<{ readonly number: number; readonly requestId: string; readonly sentMs: number }>[] =
      [];
    for (let turn = 0; turn < questions; turn++) {
      const sentMs = Date.now();
      sent.push(ask(cluster, key, turn % 4 < 2, turn).then((answer) => ({ ...answer, sentMs })));
      await wait(apartMs);
    }
    const answers = await Promise.all(sent);
    const order = [...cluster.upstream.served.keys()].filter((number) => keyOf(number) === key.number);
    const place = new Map(order.map((number, index) => [number, index]));
    const byRequest = new Map(answers.map((answer) => [answer.requestId, answer]));
    const tickets = await cluster.sql('SELECT request_id, at_ms FROM kept_tickets ORDER BY ticket');
    const waited = tickets.map(
      ({ request_id: id }) => place.get(byRequest.get(String(id))?.number ?? -1) ?? -1,
    );
    const outOfOrder = waited.filter((at, index) => index > 0 && at < (waited[index - 1] ?? 0)).length;
    const ordered = tickets.flatMap(({ request_id: id, at_ms: at }) => {
      const first = byRequest.get(String(id))?.number ?? -1;
      return answers
        .filter(({ sentMs }) => sentMs > Number(at))
        .map((later) => ({ first, later: later.number }));
    });
    const passed = ordered.filter(({ first, later }) => (place.get(later) ?? -1) < (place.get(first) ?? -1));
    const { faults } = await checkBooks(cluster);
    const most = cluster.upstream.mostAtOnce(key.number);
    return {
      figures:
        `${order.length} of ${questions} served, ${tickets.length} waited, ${outOfOrder} out of order; ` +
        `${passed.length} of ${ordered.length} passed one that waited when they were sent; ${most} at once`,
      faults: [
        ...faults,
        ...(order.length === questions ? [] : [`${order.length} of ${questions} were served`]),
        ...(tickets.length > questions / 2 ? [] : [`only ${tickets.length} waited`]),
        ...(outOfOrder === 0 ? [] : [`${outOfOrder} were served before one with a lower ticket`]),
        ...(ordered.length > questions ? [] : [`only ${ordered.length} were sent while another waited`]),
        ...(passed.length === 0 ? [] : [`${passed.length} passed one that waited when they were sent`]),
        ...(most === 1 ? [] : [`${most} ran at once`]),
      ],
    };
  });
}
