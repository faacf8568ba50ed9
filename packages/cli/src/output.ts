import { stripVTControlCharacters } from 'node:util';

export const formats = ['table', 'json', 'yaml'] as const;
export type Format = (typeof formats)[number];

/**
 * Characters that move a cursor, hide text or turn its direction: controls, format characters, separators, halves of a
 * pair.
 */
const unsafe = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;

/**
 * Text of a server as one harmless line. Neither a server nor the person who named a site may control the reader's
 * terminal.
 */
export const clean = (text: string): string =>
  stripVTControlCharacters(text.replace(/[\n\t]+/g, ' ')).replace(unsafe, '');

/** Writes each unsafe character as an escape that JSON and YAML read back. Line breaks stay. */
const escapeUnsafe = (text: string, astral: (code: number) => string): string =>
  text.replace(unsafe, (character) => {
    const code = character.codePointAt(0) ?? 0;
    if (character === '\n') return character;
    return code > 0xffff ? astral(code) : `\\u${code.toString(16).padStart(4, '0')}`;
  });

const toJson = (value: unknown, indent = 2): string =>
  `${escapeUnsafe(JSON.stringify(value, null, indent), (code) => {
    const units = String.fromCodePoint(code);
    return `\\u${units.charCodeAt(0).toString(16)}\\u${units.charCodeAt(1).toString(16)}`;
  })}\n`;

async function toYaml(value: unknown): Promise<string> {
  const { Document, visit } = await import('yaml');
  const document = new Document(value);
  visit(document, {
    Scalar: (_key, node) => {
      // YAML reads an escape only between double quotes.
      if (typeof node.value === 'string' && node.value.search(unsafe) !== -1) node.type = 'QUOTE_DOUBLE';
    },
  });
  return escapeUnsafe(document.toString({ lineWidth: 0 }), (code) => `\\U${code.toString(16).padStart(8, '0')}`);
}

function cellOf(value: unknown): string {
  if (value === null || value === undefined) return '-';
  if (Array.isArray(value)) return value.map(cellOf).join(', ');
  return clean(typeof value === 'string' ? value : JSON.stringify(value));
}

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const widthOf = (text: string): number => Array.from(text).length;

/**
 * Columns that are as wide as their content, whatever the width of the terminal. So a pipe gets the same text as the
 * terminal.
 */
function alignColumns(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_cell, column) => Math.max(...rows.map((row) => widthOf(row[column] ?? ''))));
  const lineOf = (row: readonly string[]): string =>
    row
      .map((cell, column) => cell + ' '.repeat((widths[column] ?? 0) - widthOf(cell)))
      .join('  ')
      .trimEnd();
  return rows.map((row) => `${lineOf(row)}\n`).join('');
}

/** `a.b` of an object. */
const valueAt = (item: unknown, column: string): unknown =>
  column.split('.').reduce<unknown>((node, step) => (isObject(node) ? node[step] : undefined), item);

export const tableOf = (columns: readonly string[], items: readonly unknown[]): string =>
  alignColumns([
    columns.map((name) => name.toUpperCase()),
    ...items.map((item) => columns.map((column) => cellOf(valueAt(item, column)))),
  ]);

/** One object, a line for each value in it. */
export function recordOf(value: unknown): string {
  const rows: [string, string][] = [];
  const walk = (name: string, node: unknown): void => {
    const isList = Array.isArray(node) && node.some((item) => typeof item === 'object');
    if (!isObject(node) && !isList) rows.push([clean(name), cellOf(node)]);
    else for (const [key, inner] of Object.entries(node)) walk(name === '' ? key : `${name}.${key}`, inner);
  };
  walk('', value);
  return alignColumns(rows);
}

/** Writes the result of a command. `table` gives the form that people read. */
export async function print(format: Format, value: unknown, table: (value: unknown) => string): Promise<void> {
  const text = format === 'json' ? toJson(value) : format === 'yaml' ? await toYaml(value) : table(value);
  process.stdout.write(text);
}

/** Writes one of many values, at the moment when it comes: as a line of JSON, or a document of YAML. */
export async function printNext(format: Format, value: unknown, line: (value: unknown) => string): Promise<void> {
  if (format === 'json') process.stdout.write(toJson(value, 0));
  else if (format === 'yaml') process.stdout.write(`---\n${await toYaml(value)}`);
  else process.stdout.write(`${line(value)}\n`);
}
