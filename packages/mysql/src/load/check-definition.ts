import { quotedName as name } from '../dump/definition-text';
import { isOwnUser } from '../dump/list-accounts';
import type { DumpedProgram } from '../dump/manifest';
import { TransferError } from '../session/transfer-error';

/** The end of the name is not searched, because in gbk, sjis and big5 a quote may be a part of a letter. */
const program = (what: string): RegExp => new RegExp(`^CREATE DEFINER=(?<definer>${name})(?:@${name})? ${what} [\`"]`);

/** How the server's own SHOW CREATE starts each kind of definition. */
const beginnings: Record<DumpedProgram['kind'] | 'TABLE' | 'SEQUENCE', RegExp> = {
  TABLE: /^CREATE TABLE `/,
  SEQUENCE: /^CREATE SEQUENCE `/,
  VIEW: new RegExp(
    `^CREATE ALGORITHM=\\w+ DEFINER=(?<definer>${name})(?:@${name})? SQL SECURITY (?:DEFINER|INVOKER) VIEW \``,
  ),
  FUNCTION: program('(?:AGGREGATE )?FUNCTION'),
  PROCEDURE: program('PROCEDURE'),
  PACKAGE: program('PACKAGE'),
  'PACKAGE BODY': program('PACKAGE BODY'),
  // MariaDB keeps what follows as the customer wrote it.
  TRIGGER: new RegExp(`^CREATE (?:OR REPLACE )?DEFINER=(?<definer>${name})(?:@${name})? TRIGGER\\s`, 'i'),
  EVENT: program('EVENT'),
};

/**
 * Refuses a text that is not the definition that it claims to be, and one that would run with rights of the platform. A
 * dump is untrusted: a person who can write one must not get more rights by it than the customer whose dump it is.
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
