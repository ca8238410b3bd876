import type { PresentedStatus, PresentedStatusRow } from '../../http/present/status.ts';
import { callAdmin } from '../admin-client.ts';
import { describeError } from '../describe-error.ts';
import { followStatus } from './follow-status.ts';
import { paint } from './print-status.ts';
import { selectRows } from './rows.ts';
import { drawScreen } from './screen-lines.ts';
import { openTerminal } from './terminal.ts';
import type { FullTerminal } from './terminal.ts';
import { firstState, followSelection, press } from './top-state.ts';
import type { PressedKey, TopState } from './top-state.ts';

/** How often the times of the requests are drawn again, in milliseconds. */
const redrawMs = 1_000;

/** Shows the status on the terminal until the user ends it. */
export async function watchStatus(): Promise<void> {
  const ending = new AbortController();
  let shown: ShownStatus | null = null;
  const redraw = setInterval(() => shown?.draw(), redrawMs);
  try {
    await followStatus(
      {
        onStatus(status) {
          // Opened with the first status, so that a gateway that can't be reached is a line like any other error.
          shown ??= new ShownStatus(status, () => ending.abort());
          shown.take(status);
        },
        onLost: (reason) => shown?.lose(reason),
      },
      ending.signal,
    );
  } finally {
    clearInterval(redraw);
    (shown as ShownStatus | null)?.close();
  }
}

/** A status on the terminal, and what its user does with it. */
class ShownStatus {
  readonly #terminal: FullTerminal;
  readonly #quit: () => void;
  #status: PresentedStatus;
  /** When it came, on the monotonic clock: times are shown by the gateway's clock, not by the terminal's. */
  #takenMs = performance.now();
  #state: TopState = firstState;
  #rows: readonly PresentedStatusRow[] = [];
  #lost: string | null = null;

  constructor(status: PresentedStatus, quit: () => void) {
    this.#status = status;
    this.#quit = quit;
    this.#terminal = openTerminal(
      (key) => this.#press(key),
      () => this.draw(),
    );
  }

  take(status: PresentedStatus): void {
    this.#lost = null;
    if (!this.#state.isPaused) {
      this.#status = status;
      this.#takenMs = performance.now();
    }
    this.draw();
  }

  lose(reason: string): void {
    this.#lost = reason;
    this.draw();
  }

  close(): void {
    this.#terminal.close();
  }

  draw(): void {
    const { filter, sort, isPaused } = this.#state;
    const rows = selectRows(this.#status.in_flight.data, filter, sort);
    this.#state = { ...this.#state, selected: followSelection(this.#state, rows, this.#rows) };
    this.#rows = rows;
    const isStill = isPaused || this.#lost !== null;
    const sinceMs = isStill ? 0 : performance.now() - this.#takenMs;
    const { width, height } = this.#terminal;
    this.#terminal.draw(
      drawScreen({
        status: this.#status,
        rows,
        state: this.#state,
        nowMs: Date.parse(this.#status.at) + sinceMs,
        lost: this.#lost,
        width,
        height,
        paint,
      }),
    );
  }

  #press(key: PressedKey): void {
    const { state, effect } = press(this.#state, key, this.#rows);
    this.#state = state;
    if (effect?.kind === 'quit') return this.#quit();
    if (effect?.kind === 'cancel') void this.#cancel(effect.id);
    this.draw();
  }

  async #cancel(id: string): Promise<void> {
    const notice = await callAdmin('POST', `/admin/in-flight/${encodeURIComponent(id)}/cancel`).then(
      () => `${id} is cancelled`,
      describeError,
    );
    this.#state = { ...this.#state, notice };
    this.draw();
  }
}
