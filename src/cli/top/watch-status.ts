import { emitKeypressEvents } from 'node:readline';
import type { PresentedStatus, PresentedStatusRow } from '../../http/present/status.ts';
import { callAdmin } from '../admin-client.ts';
import { describeError } from '../describe-error.ts';
import { followStatus } from './follow-status.ts';
import { paint } from './print-status.ts';
import { selectRows } from './rows.ts';
import { drawScreen } from './screen-lines.ts';
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

/** Shows the other screen of a terminal, without a cursor and without breaking lines; and the way back. */
const enter = '\x1b[?1049h\x1b[?25l\x1b[?7l';
const leave = '\x1b[?7h\x1b[?25h\x1b[?1049l';
const clear = '\x1b[2J';
const home = '\x1b[H';

/** The size of a terminal that does not say its own. */
const usualColumns = 80;
const usualLines = 24;

/** A whole terminal, as long as a command has it. */
interface FullTerminal {
  readonly width: number;
  readonly height: number;
  /** Replaces what is shown. */
  draw(lines: readonly string[]): void;
  /** Gives the terminal back as it was. */
  close(): void;
}

/** Signals that end the process while it has the terminal, and the exit codes of shells for them. */
const endingSignals = { SIGTERM: 143, SIGHUP: 129, SIGINT: 130 } as const;

/**
 * Takes over the terminal. It is given back however the process ends, but for SIGKILL: otherwise the shell would have a
 * terminal without a cursor that shows nothing of what is typed.
 */
function openTerminal(onKey: (key: PressedKey) => void, onResize: () => void): FullTerminal {
  const { stdin, stdout } = process;
  let isOpen = true;
  const close = (): void => {
    if (!isOpen) return;
    isOpen = false;
    stdin.setRawMode(false);
    stdin.pause();
    stdout.write(leave);
    process.off('exit', close);
  };
  const resized = (): void => {
    if (!isOpen) return;
    stdout.write(clear);
    onResize();
  };
  process.on('exit', close);
  for (const [signal, code] of Object.entries(endingSignals)) process.once(signal, () => process.exit(code));
  // The terminal is gone.
  stdout.on('error', () => process.exit(1));
  stdin.on('end', () => process.exit(1));
  emitKeypressEvents(stdin);
  stdin.setRawMode(true);
  stdin.on('keypress', (_text: string | undefined, key: PressedKey) => onKey(key));
  stdin.resume();
  stdout.on('resize', resized);
  stdout.write(enter + clear);
  return {
    get width() {
      return stdout.columns || usualColumns;
    },
    get height() {
      return stdout.rows || usualLines;
    },
    draw(lines) {
      if (isOpen) stdout.write(home + lines.join('\r\n'));
    },
    close,
  };
}
