import type { Flavour } from '../engines/list-engines';
import type { Session } from '../session/session';
import { TransferError } from '../session/transfer-error';
import { isOwnUser } from './list-accounts';
import type { DumpedProgram } from './manifest';

/** Matches a quoted identifier. The server quotes with double quotes if the creating session had ANSI_QUOTES. */
export const quotedName = '(?:`(?:[^`]|``)*`|"(?:[^"]|"")*")';
/** Matches a string literal as the server writes it into a definition. */
const quotedText = String.raw`'(?:[^'\\]|''|\\[\s\S])*'`;

/**
 * Matches a quoted part of a definition. An unclosed quote, which no server writes, matches up to the end of the
 * definition. Without this rule, many unclosed quotes would take quadratic time.
 */
const quoted = `${quotedText}|${quotedName}|['"\`][\\s\\S]*`;

/** Returns a pattern that matches exactly this text. */
export const exactly = (text: string): string => text.replaceAll(/[$()*+.?[\\\]^{|}]/g, String.raw`\$&`);

/**
 * Replaces matches of a pattern in a table's definition. String literals and quoted names stay as they are, because a
 * comment may contain words that the pattern matches. `replace` gets the pattern's named groups.
 */
export function replaceOutsideQuotes(
  definition: string,
  pattern: string,
  replace: (groups: Readonly<Record<string, string | undefined>>) => string,
): string {
  let replaced = '';
  let end = 0;
  for (const { 0: found, index, groups = {} } of definition.matchAll(
    new RegExp(`(?<quoted>${quoted})|${pattern}`, 'g'),
  )) {
    if (groups['quoted'] !== undefined) continue;
    replaced += definition.slice(end, index) + replace(groups);
    end = index + found.length;
  }
  return replaced + definition.slice(end);
}

const headOf = (rest: string): RegExp => new RegExp(`^CREATE DEFINER=${quotedName}(?:@${quotedName})? ${rest}`);

/** Matches the head of an event, which both flavours write alike. */
const headOfEvent = headOf(
  `EVENT ${quotedName} ON SCHEDULE [\\s\\S]*? ` +
    `ON COMPLETION (?:NOT )?PRESERVE (?:ENABLE|DISABLE)[A-Z ]*?(?: COMMENT ${quotedText})? DO `,
);
/**
 * The patterns of heads. A head is the part of a definition that the server writes before the customer's own text. Only
 * the heads listed here are repaired. A trigger of MariaDB has none, because MariaDB keeps the statement as it was
 * sent.
 */
const heads: Readonly<Partial<Record<`${Flavour} ${DumpedProgram['kind']}`, RegExp>>> = {
  'mariadb EVENT': headOfEvent,
  'mysql EVENT': headOfEvent,
  'mysql TRIGGER': headOf(`TRIGGER ${quotedName} \\w+ \\w+ ON ${quotedName} FOR EACH ROW `),
  'mysql FUNCTION': headOf(`FUNCTION ${quotedName}`),
  'mysql PROCEDURE': headOf(`PROCEDURE ${quotedName}`),
};
const returned = new RegExp(`\\) RETURNS (?:enum|set)\\((?:${quotedText},?)+\\)`);

/** The escapes that the server writes for a text in a definition, under every sql_mode. */
const escapes: Readonly<Record<string, string>> = { '0': '\0', n: '\n', r: '\r', '\\': '\\' };
const escaped = (value: string): string =>
  value.replaceAll(/[\0\n\r\\']/g, (letter) =>
    letter === "'" ? "''" : `\\${Object.keys(escapes).find((key) => escapes[key] === letter) ?? letter}`,
  );

const unescaped = (literal: string): string =>
  literal.replaceAll(/\\([0nr\\])/g, (_, letter: string) => escapes[letter] ?? '');
/**
 * Matches the string literals at the end of a part that {@link readableDefinition} repairs: a comment, or the values of
 * an ENUM or SET. Only these literals have backslash escapes. A backslash in a name before them is no escape.
 */
const literalAtEnd = new RegExp(`${quotedText}(?: DO |\\n)$|\\((?:${quotedText},?)+\\)$`);

/** The comment and return type of a routine from information_schema. Other programs have empty texts. */
export interface Routine {
  comment: string;
  returns: string;
}

/**
 * Repairs the definition of a program, in which SHOW CREATE mixes two character sets. The program's own text is in the
 * character set of the session that created the program. The text that the server adds is UTF-8, with backslashes that
 * a program with NO_BACKSLASH_ESCAPES does not understand. The returned definition has its original meaning under the
 * program's own settings.
 */
export async function readableDefinition(
  reader: Session,
  program: DumpedProgram,
  { comment, returns }: Routine,
): Promise<string> {
  const { definition, charset, sqlMode, kind } = program;
  const head = heads[`${reader.flavour} ${kind}`]?.exec(definition)?.[0] ?? '';
  const list = /^(?:enum|set)\(/i.test(returns) ? (returned.exec(definition)?.[0] ?? '') : '';
  const said = comment === '' ? '' : `    COMMENT '${escaped(Buffer.from(comment).toString('latin1'))}'\n`;
  let whole = definition;
  for (const part of [head, list, said]) {
    const at = whole.indexOf(part);
    if (at < 0) continue;
    const meant = sqlMode.includes('NO_BACKSLASH_ESCAPES') ? part.replace(literalAtEnd, unescaped) : part;
    whole = whole.slice(0, at) + (await converted(reader, meant, charset)) + whole.slice(at + part.length);
  }
  return whole;
}

/**
 * Converts UTF-8 into a character set. Both strings have one character for each byte. ASCII is not converted, because
 * MySQL converts a backslash into another character of sjis.
 */
async function converted(reader: Session, part: string, charset: string): Promise<string> {
  const pieces = part.split(/([^\0-\x7f]+)/);
  if (pieces.length === 1 || !/^\w+$/.test(charset) || charset.startsWith('utf8')) return part;
  const asked = pieces.filter((_, at) => at % 2 === 1).map((piece) => Buffer.from(piece, 'latin1').toString('hex'));
  const [row] = await reader.rows(
    `SELECT ${asked.map((hex) => `CONVERT(CONVERT(X'${hex}' USING utf8mb4) USING ${charset})`).join(', ')}`,
  );
  return pieces.map((piece, at) => (at % 2 === 0 ? piece : (row?.[(at - 1) / 2]?.toString('latin1') ?? ''))).join('');
}

const definedBy = `DEFINER=(?<definer>${quotedName})(?:@${quotedName})?`;

/**
 * Matches the beginning of a program up to the opening quote of its name. The end of the name cannot be found, because
 * a gbk, sjis or big5 character may contain the byte of a backtick.
 */
const programHead = (what: string): RegExp => new RegExp(`^CREATE ${definedBy} ${what} [\`"]`);

/** The beginning that SHOW CREATE writes for each kind of definition. */
const beginnings: Record<DumpedProgram['kind'] | 'TABLE' | 'SEQUENCE', RegExp> = {
  TABLE: /^CREATE TABLE `/,
  SEQUENCE: /^CREATE SEQUENCE `/,
  VIEW: new RegExp(`^CREATE ALGORITHM=\\w+ ${definedBy} SQL SECURITY (?:DEFINER|INVOKER) VIEW \``),
  FUNCTION: programHead('(?:AGGREGATE )?FUNCTION'),
  PROCEDURE: programHead('PROCEDURE'),
  PACKAGE: programHead('PACKAGE'),
  'PACKAGE BODY': programHead('PACKAGE BODY'),
  // MariaDB stores a trigger as the customer wrote it, so upper case and spaces may vary.
  TRIGGER: new RegExp(`^CREATE (?:OR REPLACE )?${definedBy} TRIGGER\\s`, 'i'),
  EVENT: programHead('EVENT'),
};

/**
 * Throws `statement_refused` for a text that is no definition of this kind, or that would run with rights of the
 * platform. A dump is a stranger's input. Its author must not get more rights than the customer has.
 */
export function checkDefinition(kind: keyof typeof beginnings, definition: string, object: string): void {
  const match = beginnings[kind].exec(definition);
  if (match === null)
    throw new TransferError('statement_refused', `${object} is no definition of a ${kind.toLowerCase()}`, { object });
  const definer = match.groups?.['definer'];
  if (definer === undefined) return;
  const quote = definer.charAt(0);
  const user = Buffer.from(definer.slice(1, -1).replaceAll(quote + quote, quote), 'latin1').toString('utf8');
  if (isOwnUser(user)) throw new TransferError('statement_refused', `${object} would run as ${user}`, { object });
}
