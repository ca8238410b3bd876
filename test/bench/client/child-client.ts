import { Load } from './load.ts';
import { sendToParent } from '../send-to-parent.ts';
import type { LoadOrder } from './order.ts';

/**
 * The load generator, in a process of its own, on plain sockets: it sends the requests of one order at a time, checks
 * every answer to its end, and replies with what it found.
 */

process.on('message', (order: LoadOrder) => {
  void new Load(order, sendToParent);
});
process.once('disconnect', () => process.exit());
