import { emitKeypressEvents } from 'node:readline';
import type { PressedKey } from './top-state.ts';

/** Shows the other screen of a terminal, without a cursor and without breaking lines; and the way back. */
const enter = '\x1b[?1049h\x1b[?25l\x1b[?7l';
const leave = '\x1b[?7h\x1b[?25h\x1b[?1049l';
const clear = '\x1b[2J';
const home = '\x1b[H';

/** The size of a terminal that does not say its own. */
const usualColumns = 80;
const usualLines = 24;

/** A whole terminal, as long as a command has it. */
export interface FullTerminal {
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
export function openTerminal(onKey: (key: PressedKey) => void, onResize: () => void): FullTerminal {
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
