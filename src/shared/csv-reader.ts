/** The longest cell, in UTF-16 code units: a quote that is never closed must not collect the whole file. */
const maxCellChars = 65_536;

/** The most cells of a row. */
const maxCells = 1_000;

/** A row of CSV. */
export interface CsvRow {
  /** The line on which it begins, from 1 on. */
  readonly line: number;
  readonly cells: readonly string[];
}

/** What the next character belongs to. */
type State =
  /** A cell that has no character yet. */
  | 'start'
  | 'plain'
  | 'quoted'
  /** A quote within a quoted cell: the end of the cell, or the first half of a quote. */
  | 'after_quote';

/**
 * Reads CSV (RFC 4180) in pieces of any size: cells may be quoted, and hold commas, quotes and line ends then; lines end
 * with a line feed, with or without a carriage return before it. A byte order mark is skipped, and so are empty lines.
 */
export class CsvReader {
  #state: State = 'start';
  #cell = '';
  #cells: string[] = [];
  #line = 1;
  #rowLine = 1;
  #isFirst = true;
  /** Whether the piece before ended with a carriage return outside of quotes. */
  #hasReturn = false;

  /** Takes the next piece of the text; returns the rows that end in it. Throws an `Error` that names the line of a fault. */
  push(piece: string): readonly CsvRow[] {
    const rows: CsvRow[] = [];
    let index = this.#isFirst && piece.startsWith('\ufeff') ? 1 : 0;
    if (piece !== '') this.#isFirst = false;
    while (index < piece.length) {
      const until = this.#endOfRun(piece, index);
      if (until > index) {
        this.#append(piece.slice(index, until));
        index = until;
      } else this.#takeMark(piece[index++] ?? '', rows);
    }
    return rows;
  }

  /** Ends the text; returns the last row, if it has no line end. */
  end(): readonly CsvRow[] {
    if (this.#state === 'quoted') throw this.#fault(`a quoted cell is not closed`);
    const rows: CsvRow[] = [];
    this.#endRow(rows);
    return rows;
  }

  /** Where the characters end that only belong to the cell. */
  #endOfRun(piece: string, from: number): number {
    if (this.#state === 'quoted') {
      const quote = piece.indexOf('"', from);
      return quote === -1 ? piece.length : quote;
    }
    let index = from;
    while (index < piece.length && !isMark(piece.charCodeAt(index))) index++;
    return index;
  }

  #append(text: string): void {
    if (this.#state === 'after_quote' || this.#hasReturn)
      throw this.#fault('text follows the end of a quoted cell or a lone carriage return');
    if (this.#state === 'start') this.#state = 'plain';
    if (this.#state === 'quoted') this.#line += text.split('\n').length - 1;
    this.#cell += text;
    if (this.#cell.length > maxCellChars)
      throw this.#fault(`a cell has more than ${maxCellChars} characters: is a quote not closed?`);
  }

  #takeMark(mark: string, rows: CsvRow[]): void {
    if (this.#hasReturn && mark !== '\n') throw this.#fault('a carriage return without a line feed');
    if (mark === '"') this.#takeQuote();
    else if (mark === '\r') this.#hasReturn = true;
    else if (mark === ',') this.#endCell();
    else this.#endRow(rows);
  }

  #takeQuote(): void {
    if (this.#state === 'plain') throw this.#fault('a quote is in a cell that does not begin with one');
    if (this.#state === 'after_quote') this.#cell += '"';
    this.#state = this.#state === 'quoted' ? 'after_quote' : 'quoted';
  }

  #endCell(): void {
    this.#cells.push(this.#cell);
    this.#cell = '';
    this.#state = 'start';
    if (this.#cells.length > maxCells) throw this.#fault(`a row has more than ${maxCells} cells`);
  }

  #endRow(rows: CsvRow[]): void {
    const isEmpty = this.#cells.length === 0 && this.#state === 'start';
    this.#endCell();
    if (!isEmpty) rows.push({ line: this.#rowLine, cells: this.#cells });
    this.#cells = [];
    this.#hasReturn = false;
    this.#rowLine = ++this.#line;
  }

  #fault(what: string): Error {
    return new Error(`line ${this.#line}: ${what}`);
  }
}

/** Whether a character may end a cell, or begin or end its quotation. */
function isMark(code: number): boolean {
  return code === 0x2c || code === 0x22 || code === 0x0a || code === 0x0d;
}
