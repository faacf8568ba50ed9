import { maskSql } from './safe-spans';

test.each([
  [`create role "a" login password 'secret'`, 'create role'],
  [`ALTER ROLE a PASSWORD 'SCRAM-SHA-256$secret'`, 'ALTER ROLE'],
  [`create subscription s connection 'host=h password=secret' publication p`, 'create subscription'],
  [`do $$ begin execute 'create role a password ''secret'''; end $$`, 'do'],
  [`set my.setting = 'secret'`, 'set'],
  [`copy t from stdin`, 'copy'],
  [`/* secret */ -- secret\n create or replace function f() returns text as 'secret'`, 'create function'],
  [`begin; create user a password 'secret'; commit`, 'begin; create user; commit'],
])('of %s nothing is left but what it is', (text, shown) => {
  expect(maskSql(text)).toBe(shown);
});

test.each([
  [`SELECT a FROM t WHERE b = $1 AND c = 'it''s secret' LIMIT 1`, 'SELECT a FROM t WHERE b = $1 AND c = ? LIMIT 1'],
  [`select e'it\\'s secret', 'more secret'`, 'select ?, ?'],
  ['select $tag$ secret $$ secret $tag$, $$secret$$', 'select ?, ?'],
  [`select "a;b'c" from t; select 2`, `select "a;b'c" from t; select 2`],
  [`select 'secret that never ends`, 'select ?'],
  ['select $tag$secret that never ends', 'select ?'],
  [`with x as (select 'secret') insert into t select * from x`, 'with x as (select ?) insert into t select * from x'],
])('of %s its shape is left', (text, shown) => {
  expect(maskSql(text)).toBe(shown);
});

test('a statement without end is cut', () => {
  expect(maskSql(`select ${'a, '.repeat(100_000)}b`).length).toBeLessThan(3_000);
});
