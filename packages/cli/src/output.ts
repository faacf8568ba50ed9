import { stripVTControlCharacters } from 'node:util';

export const formats = ['table', 'json', 'yaml'] as const;
export type Format = (typeof formats)[number];

/**
 * Characters that could move the cursor, hide text or reverse it: controls, format characters, separators and lone
 * surrogates.
 */
const unsafe = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;

/**
 * Turns text from a server into one harmless line. Such text may come from other people, for example the name of a
 * site, and must not control the reader's terminal.
 */
export const clean = (text: string): string =>
  stripVTControlCharacters(text.replace(/[\n\t]+/g, ' ')).replace(unsafe, '');

/** Replaces each unsafe character, except line breaks, by an escape that JSON and YAML understand. */
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
      // YAML understands an escape only between double quotes.
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
 * Aligns columns by their content. The terminal's width is not used, so that a pipe gets the same text as a terminal.
 */
function alignColumns(rows: readonly (readonly string[])[]): string {
  // `Math.max` of all widths at once would fail: a list may have more rows than a call takes arguments.
  const widths = (rows[0] ?? []).map((_cell, column) =>
    rows.reduce((widest, row) => Math.max(widest, widthOf(row[column] ?? '')), 0),
  );
  const lineOf = (row: readonly string[]): string =>
    row
      .map((cell, column) => cell + ' '.repeat((widths[column] ?? 0) - widthOf(cell)))
      .join('  ')
      .trimEnd();
  return rows.map((row) => `${lineOf(row)}\n`).join('');
}

/** Returns the value at a dotted path such as `a.b`. */
const valueAt = (item: unknown, column: string): unknown =>
  column.split('.').reduce<unknown>((node, step) => (isObject(node) ? node[step] : undefined), item);

export const tableOf = (columns: readonly string[], items: readonly unknown[]): string =>
  alignColumns([
    columns.map((name) => name.toUpperCase()),
    ...items.map((item) => columns.map((column) => cellOf(valueAt(item, column)))),
  ]);

/** Formats an object as lines of a dotted name and a value. */
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

/** Prints the result of a command. `table` formats the result if the format is `table`. */
export async function print(format: Format, value: unknown, table: (value: unknown) => string): Promise<void> {
  const text = format === 'json' ? toJson(value) : format === 'yaml' ? await toYaml(value) : table(value);
  process.stdout.write(text);
}

/**
 * Prints one of several values as soon as it exists: a line of JSON, a document of YAML, or the text that `line` makes.
 */
export async function printNext(format: Format, value: unknown, line: (value: unknown) => string): Promise<void> {
  if (format === 'json') process.stdout.write(toJson(value, 0));
  else if (format === 'yaml') process.stdout.write(`---\n${await toYaml(value)}`);
  else process.stdout.write(`${line(value)}\n`);
}
