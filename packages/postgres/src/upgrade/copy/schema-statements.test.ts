import { splitStatements } from '../../dump/split-statements';
import { readOwners } from '../../load/statement-owners';
import { type PlannedStatement, sortStatements } from './schema-statements';

const owners = { databaseOwner: 'shop', extensionOwners: new Map([['hstore', 'shop']]) };

test('every statement runs as the role that pg_dump names, and a statement without a role as the owner of the database or of the extension', () => {
  const statements = splitStatements(`SET SESSION AUTHORIZATION 'o''hara';
    CREATE TABLE public.a (id integer);
    SET SESSION AUTHORIZATION "Some Body";
    GRANT SELECT ON TABLE public.a TO other;
    RESET SESSION AUTHORIZATION;
    GRANT INSERT ON TABLE public.a TO other;
    SET SESSION AUTHORIZATION 'pg_database_owner';
    REVOKE USAGE ON SCHEMA public FROM PUBLIC;
    SET SESSION AUTHORIZATION DEFAULT;
    CREATE EXTENSION IF NOT EXISTS hstore WITH SCHEMA public;
    CREATE EXTENSION IF NOT EXISTS dblink WITH SCHEMA public;
    COMMENT ON EXTENSION dblink IS 'x';`);
  const plan = sortStatements(readOwners(statements), [], owners);
  expect(plan.pre.map(({ owner }) => owner)).toEqual(["o'hara", 'Some Body', "o'hara", 'shop', 'shop']);
  expect(plan.extensions).toEqual([{ sql: expect.stringContaining('dblink'), owner: null }]);
});

test('keys come before the rows, indexes and the rest after the rows, and statements that would change arriving rows last of all', () => {
  const pre = readOwners(
    splitStatements(`CREATE TABLE public.a (id integer);
    ALTER TABLE public.a SET (fillfactor = 50);
    CREATE SCHEMA s;
    ALTER TABLE ONLY public.a FORCE ROW LEVEL SECURITY;
    ALTER TABLE ONLY public.b NO FORCE ROW LEVEL SECURITY;
    ALTER TABLE ONLY public.p ATTACH PARTITION public.a FOR VALUES FROM (1) TO (2);
    COMMENT ON CONSTRAINT a_early ON public.a IS 'x';`),
  );
  const post = readOwners(
    splitStatements(`ALTER TABLE ONLY public.a ADD CONSTRAINT a_pkey PRIMARY KEY (id);
    CREATE INDEX a_x ON public.a USING btree (id);
    CREATE UNIQUE INDEX a_u ON public.a USING btree (id);
    ALTER TABLE ONLY public.a REPLICA IDENTITY USING INDEX a_u;
    ALTER INDEX public.p_x ATTACH PARTITION public.a_x;
    CREATE TRIGGER t AFTER INSERT ON public.a FOR EACH ROW EXECUTE FUNCTION public.f();
    ALTER TABLE public.a ENABLE ALWAYS TRIGGER t;
    ALTER TABLE ONLY public.a ADD CONSTRAINT a_fk FOREIGN KEY (id) REFERENCES public.b(id);
    ALTER TABLE public.a ADD CONSTRAINT a_late CHECK ((id > 0)) NOT VALID;
    COMMENT ON CONSTRAINT a_late ON public.a IS 'x';
    CREATE PUBLICATION mine WITH (publish = 'insert');`),
  );
  const heads = Object.fromEntries(
    Object.entries<readonly PlannedStatement[]>({ ...sortStatements(pre, post, owners) }).map(([part, statements]) => [
      part,
      statements.map(({ sql }) => sql.split(/\s+/).slice(0, 3).join(' ')),
    ]),
  );
  expect(heads).toEqual({
    schemas: ['CREATE SCHEMA s'],
    extensions: [],
    pre: ['CREATE TABLE public.a', 'ALTER TABLE public.a', 'ALTER TABLE ONLY', 'COMMENT ON CONSTRAINT'],
    attach: ['ALTER TABLE ONLY'],
    keys: ['ALTER TABLE ONLY', 'CREATE UNIQUE INDEX', 'ALTER TABLE ONLY'],
    indexes: ['CREATE INDEX a_x'],
    rest: ['ALTER INDEX public.p_x', 'CREATE TRIGGER t', 'ALTER TABLE ONLY', 'CREATE PUBLICATION mine'],
    late: ['ALTER TABLE ONLY', 'ALTER TABLE public.a', 'ALTER TABLE public.a', 'COMMENT ON CONSTRAINT'],
  });
});
