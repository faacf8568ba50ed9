import { listFiles, readText } from './source-files';

/**
 * Matches statements that remove or rename something, or refuse data. Processes of the previous release still use the
 * migrated database, and would fail when they read a removed column or write refused data.
 */
const takesAway =
  /^\s*(?:DROP\s+(?:TABLE|TYPE|INDEX|VIEW|FUNCTION)|ALTER\s+TABLE[\s\S]*?\b(?:DROP\s+(?:COLUMN|CONSTRAINT)|RENAME|SET\s+NOT\s+NULL|(?:SET\s+DATA\s+)?TYPE\s)|ALTER\s+TYPE[\s\S]*?\bRENAME)/i;
/** The exceptions, which docs/guides/upgrading.md names. */
const beforeTheFirstRelease = ['20261122224500_standard_workflow_names', '20261122071337_domains_are_proven'];

/** Splits a migration into its statements, each with the comments before it. */
const statementsOf = (sql: string): string[] => sql.split(/;\s*$/m).map((statement) => statement.trim());
const bodyOf = (statement: string): string => statement.replace(/^(?:\s*--[^\n]*\n)+/, '');
const refusedIn = (sql: string): string[] =>
  statementsOf(sql).filter(
    (statement) => takesAway.test(bodyOf(statement)) && !/^--\s*removed: not used since /m.test(statement),
  );

describe('migrations', () => {
  it('take nothing away that the release before may use', () => {
    const files = listFiles('services/*/prisma/migrations/*/migration.sql').filter(
      (file) => !beforeTheFirstRelease.some((name) => file.includes(name)),
    );
    expect(files.length).toBeGreaterThan(10);
    expect(files.filter((file) => refusedIn(readText(file)).length > 0)).toEqual([]);
  });

  it.each([
    'ALTER TABLE "a" DROP COLUMN "b"',
    'DROP TABLE "a"',
    'ALTER TABLE "a" RENAME COLUMN "b" TO "c"',
    'ALTER TABLE "a" ALTER COLUMN "b" SET NOT NULL',
    'ALTER TABLE "a" ALTER COLUMN "b" SET DATA TYPE text',
    'DROP INDEX "a_b"',
  ])('%s needs a word of when it was last used', (statement) => {
    expect(refusedIn(`CREATE TABLE "x" (y int);\n-- a note\n${statement};\n`)).toHaveLength(1);
    expect(refusedIn(`-- removed: not used since 1.4\n${statement};\n`)).toEqual([]);
  });
});
