import { TransferError } from '../session/transfer-error';

/**
 * An SQL statement. `outline` is its text as statement.rules.ts reads it: comments and runs of spaces become one space,
 * and each string or dollar-quoted body becomes `''`.
 */
export interface Statement {
  text: string;
  outline: string;
}

const wordCharacter = /[A-Za-z0-9_$\u0080-\uffff]/;
const dollarTag = /^\$(?:[A-Za-z_\u0080-\uffff][A-Za-z0-9_\u0080-\uffff]*)?\$/;
const routineStart = /^ ?CREATE (?:OR REPLACE )?(?:FUNCTION|PROCEDURE) /i;

/**
 * Returns the end of a string or quoted name. A doubled quote does not end the string. With `hasEscapes`, `\'` does not
 * end it either.
 */
function endOfQuoted(sql: string, start: number, hasEscapes: boolean): number {
  const quote = sql[start];
  for (let at = start + 1; at < sql.length; at++) {
    if (hasEscapes && sql[at] === '\\') at++;
    else if (sql[at] === quote && sql[at + 1] === quote) at++;
    else if (sql[at] === quote) return at + 1;
  }
  throw new TransferError('dump_malformed', 'a string or a quoted name has no end');
}

/** Returns the end of a block comment. Postgres allows nested comments. */
function endOfComment(sql: string, start: number): number {
  let depth = 0;
  for (let at = start; at < sql.length; at++) {
    const pair = sql.slice(at, at + 2);
    if (pair === '/*') depth++;
    else if (pair === '*/') depth--;
    else continue;
    at++;
    if (depth === 0) return at + 1;
  }
  throw new TransferError('dump_malformed', 'a comment has no end');
}

function endOfDollarQuoted(sql: string, start: number, tag: string): number {
  const end = sql.indexOf(tag, start + tag.length);
  if (end < 0) throw new TransferError('dump_malformed', 'a dollar-quoted string has no end');
  return end + tag.length;
}

class Splitter {
  readonly statements: Statement[] = [];
  private readonly sql: string;
  private at = 0;
  private start = 0;
  private outline = '';
  private parentheses = 0;
  /**
   * The number of open BEGIN ATOMIC and CASE blocks in a standard SQL body. A semicolon within them does not end the
   * statement.
   */
  private blocks = 0;

  constructor(sql: string) {
    this.sql = sql;
  }

  run(): Statement[] {
    while (this.at < this.sql.length) this.step();
    if (this.outline.trim() !== '') throw new TransferError('dump_malformed', 'the last statement has no end');
    return this.statements;
  }

  private step(): void {
    const character = this.sql[this.at] ?? '';
    if (character === "'" || character === '"') this.takeQuoted(character, false);
    else if (wordCharacter.test(character) && character !== '$') this.takeWord();
    else if (this.sql.startsWith('--', this.at)) this.skipTo(this.endOfLine());
    else if (this.sql.startsWith('/*', this.at)) this.skipTo(endOfComment(this.sql, this.at));
    else if (character === '$') this.takeDollar();
    else if (character === '\\') throw new TransferError('meta_command', 'a backslash outside of a string');
    else if (character === '\0') throw new TransferError('dump_malformed', 'a NUL character');
    else if (/\s/.test(character)) this.skipTo(this.at + 1);
    else this.takeSign(character);
  }

  private endOfLine(): number {
    const end = this.sql.slice(this.at).search(/[\r\n]/);
    return end < 0 ? this.sql.length : this.at + end;
  }

  private skipTo(end: number): void {
    if (!this.outline.endsWith(' ')) this.outline += ' ';
    this.at = end;
  }

  private takeQuoted(quote: string, hasEscapes: boolean): void {
    const end = endOfQuoted(this.sql, this.at, hasEscapes);
    this.outline += quote === '"' ? this.sql.slice(this.at, end) : "''";
    this.at = end;
  }

  private takeDollar(): void {
    // The slice keeps the match from reading the rest of the dump. The tags that pg_dump writes are far shorter than
    // 260 characters.
    const tag = dollarTag.exec(this.sql.slice(this.at, this.at + 260))?.[0];
    if (tag === undefined) {
      this.takeSign('$');
      return;
    }
    this.at = endOfDollarQuoted(this.sql, this.at, tag);
    this.outline += "''";
  }

  private takeWord(): void {
    let end = this.at;
    while (wordCharacter.test(this.sql[end] ?? '')) end++;
    const word = this.sql.slice(this.at, end);
    this.countBlock(word.toUpperCase(), end);
    this.outline += word;
    this.at = end;
    if (word.toUpperCase() === 'E' && this.sql[end] === "'") this.takeQuoted("'", true);
  }

  private countBlock(word: string, end: number): void {
    if (!routineStart.test(this.outline)) return;
    if (word === 'BEGIN' && /^\s+ATOMIC\b/i.test(this.sql.slice(end, end + 32))) this.blocks++;
    else if (word === 'CASE' && this.blocks > 0) this.blocks++;
    else if (word === 'END' && this.blocks > 0) this.blocks--;
  }

  private takeSign(sign: string): void {
    this.at++;
    if (sign === '(') this.parentheses++;
    if (sign === ')') this.parentheses--;
    if (sign !== ';' || this.parentheses > 0 || this.blocks > 0) {
      this.outline += sign;
      return;
    }
    const outline = this.outline.trim();
    if (outline !== '') this.statements.push({ text: this.sql.slice(this.start, this.at - 1).trim(), outline });
    this.start = this.at;
    this.outline = '';
  }
}

/**
 * Splits a schema of pg_dump (standard strings, UTF-8) into statements. Throws `meta_command` for a backslash outside
 * of strings, and `dump_malformed` for a NUL character or an unfinished statement, string, name or comment.
 */
export const splitStatements = (sql: string): Statement[] => new Splitter(sql).run();
