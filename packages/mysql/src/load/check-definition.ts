import { isOwnUser } from '../dump/list-accounts';
import type { DumpedProgram } from '../dump/manifest';
import { TransferError } from '../session/transfer-error';

/** How the server's own SHOW CREATE begins each kind of definition. */
const beginnings: Record<DumpedProgram['kind'] | 'TABLE' | 'SEQUENCE', RegExp> = {
  TABLE: /^CREATE TABLE `/,
  SEQUENCE: /^CREATE SEQUENCE `/,
  VIEW: /^CREATE ALGORITHM=\w+ (?<definer>DEFINER=\S+ )SQL SECURITY (?:DEFINER|INVOKER) VIEW `/,
  FUNCTION: /^CREATE (?<definer>DEFINER=.+?@`[^`]*` )?(?:AGGREGATE )?FUNCTION `/,
  PROCEDURE: /^CREATE (?<definer>DEFINER=.+?@`[^`]*` )?PROCEDURE `/,
  PACKAGE: /^CREATE (?<definer>DEFINER=.+?@`[^`]*` )?PACKAGE `/,
  'PACKAGE BODY': /^CREATE (?<definer>DEFINER=.+?@`[^`]*` )?PACKAGE BODY `/,
  TRIGGER: /^CREATE (?<definer>DEFINER=.+?@`[^`]*` )?TRIGGER /i,
  EVENT: /^CREATE (?<definer>DEFINER=.+?@`[^`]*` )?EVENT `/,
};

/**
 * Refuses a text that is not the definition that it says it is, and one that would run with rights of the platform. A dump is a stranger's: whoever may write one must not
 * get more by it than the customer whose it is.
 */
export function checkDefinition(kind: keyof typeof beginnings, definition: string, definer: string | null, object: string): void {
  const match = beginnings[kind].exec(definition);
  if (match === null) throw new TransferError('statement_refused', `${object} is no definition of a ${kind.toLowerCase()}`, { object });
  if (definer === null) return;
  const named = /^DEFINER=`((?:[^`]|``)*)`(?:@`((?:[^`]|``)*)`)? $/.exec(match.groups?.['definer'] ?? '');
  const user = named?.[1]?.replaceAll('``', '`');
  if (user === undefined) throw new TransferError('statement_refused', `${object} names no definer`, { object });
  if (isOwnUser(Buffer.from(user, 'latin1').toString('utf8'))) {
    throw new TransferError('statement_refused', `${object} would run as ${user}`, { object });
  }
}
