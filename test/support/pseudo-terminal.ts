import { spawn, spawnSync } from 'node:child_process';
import { onTestFinished } from 'vitest';
import { eventually } from './eventually.ts';

/** Why there is no pseudo-terminal here; `null` where there is one. */
export const terminalAbsence: string | null =
  spawnSync('python3', ['-c', 'import fcntl, pty, termios']).status === 0
    ? null
    : 'no python3 with the modules of a pseudo-terminal';

/**
 * Runs a program at a pseudo-terminal of a size. Lines of its input are orders: `size ROWS COLUMNS`, or `keys` and what is
 * typed, in hexadecimal. Its output is what the program has written. At the end it prints the terminal's modes that are
 * not as they were.
 */
const python = `
import fcntl, os, pty, select, struct, sys, termios
rows, columns = int(sys.argv[1]), int(sys.argv[2])
def size(fd, rows, columns):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack('HHHH', rows, columns, 0, 0))
master, slave = pty.openpty()
size(master, rows, columns)
before = termios.tcgetattr(slave)
child = os.fork()
if child == 0:
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    for fd in (0, 1, 2): os.dup2(slave, fd)
    os.close(master)
    os.execvp(sys.argv[3], sys.argv[3:])
orders = b''
status = None
while True:
    ready, _, _ = select.select([master] + ([0] if status is None else []), [], [], 0.02)
    if master in ready:
        data = os.read(master, 65536)
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    elif status is not None:
        break
    if 0 in ready:
        orders += os.read(0, 65536)
        while b'\\n' in orders:
            line, orders = orders.split(b'\\n', 1)
            words = line.decode().split(' ')
            if words[0] == 'size': size(master, int(words[1]), int(words[2]))
            if words[0] == 'keys': os.write(master, bytes.fromhex(words[1]))
            if words[0] == 'signal': os.kill(child, int(words[1]))
    if status is None:
        done, code = os.waitpid(child, os.WNOHANG)
        if done == child: status = code
after = termios.tcgetattr(slave)
sys.stderr.write('restored' if before == after else 'not restored')
sys.exit(os.waitstatus_to_exitcode(status))
`;
import { programFile } from './program.ts';

/** A program at a pseudo-terminal. */
export interface PseudoTerminal {
  /** Everything written so far. */
  readonly output: () => string;
  /** What the terminal shows now, line by line, without blanks at the ends. */
  readonly screen: () => readonly string[];
  /** Whether anything was written behind the last column. */
  readonly hasOverflowed: () => boolean;
  /** Whether the other screen is shown. */
  readonly isFull: () => boolean;
  /** Resolves when a line of the screen matches. */
  shows(pattern: RegExp): Promise<void>;
  type(keys: string): void;
  resize(rows: number, columns: number): void;
  signal(number: number): void;
  /** The exit code, and whether the terminal's modes are as they were. */
  readonly finished: Promise<{ readonly code: number | null; readonly isRestored: boolean }>;
}

/** Starts `textgate` from source at a pseudo-terminal. */
export function startAtTerminal(
  args: readonly string[],
  { rows, columns }: { readonly rows: number; readonly columns: number },
  environment: Readonly<Record<string, string>>,
): PseudoTerminal {
  const command = [String(rows), String(columns), process.execPath, programFile, ...args];
  const child = spawn('python3', ['-c', python, ...command], {
    env: { PATH: process.env['PATH'], TERM: 'xterm-256color', ...environment },
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  let output = '';
  let errors = '';
  let size = { rows, columns };
  child.stdout.setEncoding('utf8').on('data', (text: string) => void (output += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => void (errors += text));
  const order = (line: string): void => void child.stdin.write(`${line}\n`);
  let read = { output, size, result: readScreen(output, size) };
  /** What is shown, read anew only where something was written: tests look at it each few milliseconds. */
  const shown = () => {
    if (read.output !== output || read.size !== size)
      read = { output, size, result: readScreen(output, size) };
    return read.result;
  };
  const screen = (): readonly string[] => shown().lines;
  return {
    output: () => output,
    screen,
    hasOverflowed: () => shown().hasOverflowed,
    isFull: () => shown().isFull,
    shows: (pattern) =>
      eventually(`the terminal shows ${pattern}`, () => screen().some((line) => pattern.test(line))).catch(
        (error: unknown) => {
          throw new Error(`${String(error)}:\n${screen().join('\n')}\n${errors}`, { cause: error });
        },
      ),
    type: (keys) => order(`keys ${Buffer.from(keys).toString('hex')}`),
    resize(toRows, toColumns) {
      size = { rows: toRows, columns: toColumns };
      order(`size ${toRows} ${toColumns}`);
    },
    signal: (number) => order(`signal ${number}`),
    finished: new Promise((resolve) =>
      child.on('close', (code) => resolve({ code, isRestored: errors === 'restored' })),
    ),
  };
}

/** What a terminal shows of an output, as far as our commands use it: moves home, clears, and colours. */
function readScreen(output: string, { columns }: { readonly rows: number; readonly columns: number }) {
  let lines: string[] = [''];
  let isFull = false;
  let hasOverflowed = false;
  let at = { line: 0, column: 0 };
  for (const [part] of output.matchAll(/\r|\n|\p{Cc}\[[?\d;]*[A-Za-z]|[^]/gu)) {
    if (part === '\x1b[H') at = { line: 0, column: 0 };
    else if (part === '\x1b[2J') lines = [''];
    else if (part === '\x1b[?1049h') isFull = true;
    else if (part === '\x1b[?1049l') isFull = false;
    else if (part === '\r') at.column = 0;
    else if (part === '\n') at = { line: at.line + 1, column: at.column };
    else if (!part.startsWith('\x1b')) {
      const line = (lines[at.line] ?? '').padEnd(at.column);
      lines[at.line] = line.slice(0, at.column) + part + line.slice(at.column + part.length);
      at.column += part.length;
      if (isFull && at.column > columns) hasOverflowed = true;
    }
  }
  return { lines: Array.from(lines, (line) => (line ?? '').trimEnd()), isFull, hasOverflowed };
}
