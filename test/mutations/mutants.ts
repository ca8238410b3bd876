import { parseAst } from 'rolldown/parseAst';

/** A small fault that a program can put into a source: its bytes from `start` to `end` become `text`. */
export interface Mutant {
  readonly start: number;
  readonly end: number;
  readonly text: string;
  /** Where the code begins that runs whenever the fault does: of an operator, its left side. */
  readonly runsAt: number;
  /** What it does, such as `< becomes <=`. */
  readonly kind: string;
}

/** A node of the tree of a source, as rolldown's parser gives it. */
interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [field: string]: unknown;
}

/** What an operator becomes. */
const swapped: Readonly<Record<string, string>> = {
  '<': '<=',
  '<=': '<',
  '>': '>=',
  '>=': '>',
  '===': '!==',
  '!==': '===',
  '+': '-',
  '-': '+',
  '*': '/',
  '/': '*',
  '&&': '||',
  '||': '&&',
};

/** Statements without which a program goes on. */
const droppable = new Set(['CallExpression', 'AssignmentExpression', 'AwaitExpression', 'UpdateExpression']);

/** All mutants of a source in TypeScript, in the order of their places. Types and imports have none. */
export function mutantsOf(source: string): readonly Mutant[] {
  const found: Mutant[] = [];
  const visit = (value: unknown): void => {
    if (Array.isArray(value)) for (const each of value) visit(each);
    else if (isNode(value) && !/^(?:TS(?!As|NonNull|Satisfies)|Import|ExportAll)/.test(value.type)) {
      found.push(...mutantsAt(value, source));
      for (const field of Object.values(value)) visit(field);
    }
  };
  visit(parseAst(source, { lang: 'ts' }));
  return found.toSorted((one, other) => one.start - other.start || one.end - other.end);
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && typeof (value as Partial<Node>).type === 'string';
}

function mutantsAt(node: Node, source: string): readonly Mutant[] {
  const { type, start, end } = node;
  switch (type) {
    case 'BinaryExpression':
    case 'LogicalExpression': {
      const operator = String(node['operator']);
      const becomes = swapped[operator];
      if (becomes === undefined) return [];
      const [left, right] = [node['left'], node['right']] as [Node, Node];
      // Texts are joined, and not added.
      if (operator === '+' && [left, right].some((side) => /String|Template/.test(describe(side)))) return [];
      const at = source.indexOf(operator, left.end);
      return [
        {
          start: at,
          end: at + operator.length,
          text: becomes,
          runsAt: left.start,
          kind: `${operator} becomes ${becomes}`,
        },
      ];
    }
    case 'IfStatement':
    case 'ConditionalExpression': {
      const test = node['test'] as Node;
      const text = `!(${source.slice(test.start, test.end)})`;
      return [{ start: test.start, end: test.end, text, runsAt: test.start, kind: 'a condition is negated' }];
    }
    case 'Literal': {
      if (typeof node['value'] === 'boolean')
        return [
          { start, end, text: String(!node['value']), runsAt: start, kind: 'a truth value is the other one' },
        ];
      if (typeof node['value'] !== 'number') return [];
      return [{ start, end, text: String(node['value'] + 1), runsAt: start, kind: 'a number is one more' }];
    }
    case 'ExpressionStatement':
      if (!droppable.has((node['expression'] as Node).type)) return [];
      return [{ start, end, text: ';', runsAt: start, kind: 'a statement is dropped' }];
    case 'ReturnStatement':
      // `false` becomes `true` as a truth value, and nothing is as false as it.
      if (!isNode(node['argument']) || node['argument']['value'] === false) return [];
      return [{ start, end, text: 'return undefined as never;', runsAt: start, kind: 'nothing is returned' }];
    default:
      return [];
  }
}

/** The type of a node, and whether it is a text. */
function describe({ type, value }: Node): string {
  return `${type} ${typeof value === 'string' ? 'String' : ''}`;
}

/** Where a fault is, by the number of its line and by the text of it, and what it does there. */
export function placeOf(source: string, { start, end, kind }: Mutant) {
  const before = source.slice(0, start).split('\n');
  const [changed = ''] = source.slice(start, end).split('\n');
  const lineText = source.split('\n')[before.length - 1]?.trim() ?? '';
  return { line: before.length, lineText, change: `${kind}: ${changed.trim()}` };
}
