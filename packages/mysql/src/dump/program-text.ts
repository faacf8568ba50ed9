import type { Flavour } from '../engines/version';
import type { Session } from '../session/session';
import type { DumpedProgram } from './manifest';
import { quotedName as name, quotedText as text } from './quoted-text';

const headOf = (rest: string): RegExp => new RegExp(`^CREATE DEFINER=${name}(?:@${name})? ${rest}`);

/**
 * Matches the part of a definition that the server writes before the customer's text. MariaDB stores a trigger as the
 * client sent it.
 */
const headOfEvent = headOf(
  `EVENT ${name} ON SCHEDULE [\\s\\S]*? ` +
    `ON COMPLETION (?:NOT )?PRESERVE (?:ENABLE|DISABLE)[A-Z ]*?(?: COMMENT ${text})? DO `,
);
const heads: Readonly<Partial<Record<`${Flavour} ${DumpedProgram['kind']}`, RegExp>>> = {
  'mariadb EVENT': headOfEvent,
  'mysql EVENT': headOfEvent,
  'mysql TRIGGER': headOf(`TRIGGER ${name} \\w+ \\w+ ON ${name} FOR EACH ROW `),
  'mysql FUNCTION': headOf(`FUNCTION ${name}`),
  'mysql PROCEDURE': headOf(`PROCEDURE ${name}`),
};
const returned = new RegExp(`\\) RETURNS (?:enum|set)\\((?:${text},?)+\\)`);

/** The escapes of a text in a definition. The server uses them whatever the sql_mode of the program is. */
const escapes: Readonly<Record<string, string>> = { '0': '\0', n: '\n', r: '\r', '\\': '\\' };
const escaped = (value: string): string =>
  value.replaceAll(/[\0\n\r\\']/g, (letter) =>
    letter === "'" ? "''" : `\\${Object.keys(escapes).find((key) => escapes[key] === letter) ?? letter}`,
  );

const unescaped = (literal: string): string =>
  literal.replaceAll(/\\([0nr\\])/g, (_, letter: string) => escapes[letter] ?? '');
/** Matches a comment or the values of an ENUM at the end. Names before it have no escapes. */
const literalAtEnd = new RegExp(`${text}(?: DO |\\n)$|\\((?:${text},?)+\\)$`);

/** The fields of a routine in the server's catalogue. They are empty for other programs. */
export interface Routine {
  comment: string;
  returns: string;
}

/**
 * Repairs a definition from SHOW CREATE so that the program's own settings read it correctly. The program's text has
 * the character set of its session. The server's text around it is UTF-8, with backslashes that NO_BACKSLASH_ESCAPES
 * does not allow.
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
 * Converts UTF-8 into a character set. Both have one character for each byte. ASCII stays unchanged, because sjis has
 * another backslash for U+005C.
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
