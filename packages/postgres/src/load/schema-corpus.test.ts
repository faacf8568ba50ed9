/** @tier long */
import { createOwnedDatabase, dumpedStatements } from '../../test/databases';
import { dumpDatabase } from '../dump/dump-database';
import { fingerprintDatabase } from '../dump/fingerprint-database';
import { fillTables } from '../testing/fill-tables';
import { withClient } from '../testing/run-sql';
import { asReadAgain, listRealSchemas, missingSchema } from '../testing/schema-corpus';
import { loadDatabase } from './load-database';

const schemas = listRealSchemas();
const isHere = schemas.length > 0;

(isHere ? describe : describe.skip)('dump and load', () => {
  test.each(isHere ? schemas : [missingSchema])(
    'the schema of $name comes back as it was, with its privileges and rows',
    async ({ name, sql }) => {
      const source = await createOwnedDatabase();
      const { empty, ...filled } = await withClient(source.url, async (client) => {
        await client.query(sql);
        return fillTables(client, 8);
      });
      process.stderr.write(
        `${name}: ${JSON.stringify(filled)}${empty.length === 0 ? '' : ` without rows: ${empty.join(', ')}`}\n`,
      );
      const target = await createOwnedDatabase();
      const { findings } = await loadDatabase({ ...target.loader, sections: dumpDatabase({ url: source.readerUrl }) });
      expect(findings).toEqual([]);
      expect((await dumpedStatements(target)).map(asReadAgain)).toEqual(
        (await dumpedStatements(source)).map(asReadAgain),
      );
      const [before, after] = [
        await fingerprintDatabase({ url: source.readerUrl }),
        await fingerprintDatabase({ url: target.readerUrl }),
      ];
      expect(after.tables).toEqual(before.tables);
      expect(after.sequences).toEqual(before.sequences);
    },
  );
});
