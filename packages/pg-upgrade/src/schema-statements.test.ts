import { splitStatements } from '@drydock/pg-transfer/split-statements';
import { sortStatements } from './schema-statements';

test('keys come before the rows, indexes and the rest after them, and what would touch arriving rows last of all', () => {
  const pre = splitStatements(`CREATE TABLE public.a (id integer);
    ALTER TABLE public.a OWNER TO shop;
    ALTER TABLE ONLY public.a FORCE ROW LEVEL SECURITY;
    ALTER TABLE ONLY public.b NO FORCE ROW LEVEL SECURITY;`);
  const post = splitStatements(`ALTER TABLE ONLY public.a ADD CONSTRAINT a_pkey PRIMARY KEY (id);
    CREATE INDEX a_x ON public.a USING btree (id);
    CREATE UNIQUE INDEX a_u ON public.a USING btree (id);
    ALTER TABLE ONLY public.a REPLICA IDENTITY USING INDEX a_u;
    ALTER INDEX public.p_x ATTACH PARTITION public.a_x;
    CREATE TRIGGER t AFTER INSERT ON public.a FOR EACH ROW EXECUTE FUNCTION public.f();
    ALTER TABLE public.a ENABLE ALWAYS TRIGGER t;
    ALTER TABLE ONLY public.a ADD CONSTRAINT a_fk FOREIGN KEY (id) REFERENCES public.b(id);
    CREATE PUBLICATION mine WITH (publish = 'insert');`);
  const heads = Object.fromEntries(
    Object.entries<readonly string[]>({ ...sortStatements(pre, post) }).map(([part, texts]) => [
      part,
      texts.map((text) => text.split(/\s+/).slice(0, 3).join(' ')),
    ]),
  );
  expect(heads).toEqual({
    pre: ['CREATE TABLE public.a', 'ALTER TABLE public.a', 'ALTER TABLE ONLY'],
    keys: ['ALTER TABLE ONLY', 'CREATE UNIQUE INDEX', 'ALTER TABLE ONLY'],
    indexes: ['CREATE INDEX a_x'],
    rest: ['ALTER INDEX public.p_x', 'CREATE TRIGGER t', 'ALTER TABLE ONLY', 'CREATE PUBLICATION mine'],
    late: ['ALTER TABLE ONLY', 'ALTER TABLE public.a'],
  });
});
