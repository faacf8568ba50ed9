/**
 * @tier long
 * @processes
 * @root long
 */
import { describeEngines } from '../../test/engines';
import { ask, Servers } from '../../test/servers';
import { checkServer } from './precheck';

const account = 300_912;

describeEngines(['mariadb@10.5', 'mariadb@10.11', 'mariadb@11.8'], (engine) => {
  const servers = new Servers();
  afterEach(() => servers.close());

  test('names that differ in case, accents or a space only are told apart', async () => {
    const { admin } = await servers.start(engine, { account });
    await ask(
      admin,
      "CREATE USER 'Owner'@'%'",
      'CREATE ROLE helper',
      'CREATE DATABASE shop',
      'CREATE DATABASE Shop',
      'USE shop',
      'CREATE TABLE Users (id INT PRIMARY KEY)',
      'CREATE TABLE users (id INT)',
      'CREATE TABLE straße (id INT UNIQUE)',
      'CREATE TABLE strasse (id INT, KEY (id))',
      'CREATE TABLE Shop.Users (id INT)',
      'CREATE DEFINER = Owner VIEW mine AS SELECT 1',
      'CREATE DEFINER = owner VIEW other AS SELECT 1',
      'CREATE DEFINER = öwner PROCEDURE accent() SELECT 1',
      'CREATE DEFINER = `Owner ` TRIGGER space BEFORE INSERT ON users FOR EACH ROW SET @a = 1',
      'CREATE DEFINER = OWNER EVENT upper ON SCHEDULE EVERY 1 HOUR DO SET @a = 1',
      'CREATE DEFINER = helper PROCEDURE by_role() SELECT 1',
    );
    const { findings } = await checkServer({ admin, release: engine.release }, null, 1e12);
    const toldOf = (wanted: string): string[] => {
      const detail = findings.find(({ code }) => code === wanted)?.detail ?? '';
      return detail
        .slice(detail.indexOf(': ') + 2, -1)
        .split(', ')
        .sort();
    };
    expect(toldOf('keyless_tables')).toEqual(['Shop.Users', 'shop.strasse', 'shop.users']);
    expect(toldOf('definer_missing')).toEqual([
      'event shop.upper',
      'procedure shop.accent',
      'trigger shop.space',
      'view shop.other',
    ]);
  });
});
