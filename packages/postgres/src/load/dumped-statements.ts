import { readText, type SectionReader, textBytesMax } from '../dump/dump-format';
import { type Statement, splitStatements } from '../dump/split-statements';
import { publicOwnerOf } from './owner-roles';
import { checkStatement, describeStatement } from './statement.rules';
import { isOwnerChange, type OwnedStatement, readOwners } from './statement-owners';

export interface SqlStatement extends OwnedStatement {
  object: string;
}

/** Removes leading comments, which the splitting leaves in a statement. */
const withoutComments = (text: string): string => text.replace(/^(?:--[^\n]*\n|\s)+/, '');

/** Reads and checks one section of the schema. With `saysOwners`, it also reads the role that creates each object. */
export async function readStatements(
  reader: SectionReader,
  path: string,
  saysOwners: boolean,
): Promise<SqlStatement[]> {
  const statements = splitStatements(await readText(await reader.expect(path), textBytesMax));
  const isRun = (statement: Statement): boolean => {
    if (saysOwners && (isOwnerChange(statement) || publicOwnerOf(statement) !== null)) return true;
    return checkStatement(statement) === 'run';
  };
  const run = statements.filter(isRun);
  const owned = saysOwners ? readOwners(run) : run.map((statement) => ({ ...statement, owner: null }));
  return owned.map(({ text, outline, owner }) => ({
    text: withoutComments(text),
    outline,
    owner,
    object: describeStatement(outline),
  }));
}
