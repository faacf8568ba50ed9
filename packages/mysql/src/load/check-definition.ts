import { quotedName as name } from '../dump/definition-text';
import { isOwnUser } from '../dump/list-accounts';
import type { DumpedProgram } from '../dump/manifest';
import { TransferError } from '../session/transfer-error';

/**
 * Matches the beginning of a program up to the opening quote of its name. The end of the name cannot be found, because
 * a gbk, sjis or big5 character may contain the byte of a quote.
 */
const program = (what: string): RegExp => new RegExp(`^CREATE DEFINER=(?<definer>${name})(?:@${name})? ${what} [\`"]`);

/** The beginning that SHOW CREATE writes for each kind of definition. */
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
  // MariaDB stores a trigger as the customer wrote it, so upper case and spaces may vary.
  TRIGGER: new RegExp(`^CREATE (?:OR REPLACE )?DEFINER=(?<definer>${name})(?:@${name})? TRIGGER\\s`, 'i'),
  EVENT: program('EVENT'),
};

/**
 * Throws `statement_refused` for a text that is no definition of this kind, or that would run with rights of the
 * platform. A dump is a stranger's input, whose author must not get more rights than the customer has.
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
