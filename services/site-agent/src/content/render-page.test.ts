import { escapeHtml, parsePage } from './render-page';

test('text outside of instructions stays as it is, braces too', () => {
  expect(parsePage('a {{b}} <?xml version="1.0"?> c')).toEqual([
    { kind: 'html', html: 'a {{b}} <?xml version="1.0"?> c' },
  ]);
});

test('<?each?> has a part for a row, and perhaps one for no rows', () => {
  expect(parsePage('x<?each select 1 as a ?>[{{ a }}]<?none?>-<?end?>y')).toEqual([
    { kind: 'html', html: 'x' },
    {
      kind: 'each',
      sql: 'select 1 as a',
      row: [
        { kind: 'html', html: '[' },
        { kind: 'column', name: 'a' },
        { kind: 'html', html: ']' },
      ],
      none: '-',
    },
    { kind: 'html', html: 'y' },
  ]);
});

test.each([
  '<?end?>',
  '<?none?>',
  '<?each select 1 ?>',
  '<?each select 1 ?><?sql select 2 ?><?end?>',
  '<?each select 1 ?><?none?><?none?><?end?>',
  '<?sql delete from x ?>',
  '<?sql ?>',
])('%s cannot be understood', (page) => {
  expect(() => parsePage(page)).toThrow(expect.objectContaining({ name: 'PageError' }));
});

test('every character that could end a text or an attribute is escaped', () => {
  expect(escapeHtml(`<&>"'`)).toBe('&lt;&amp;&gt;&quot;&#39;');
});

test('a page of openings without an end is read once, not once for each opening', () => {
  const page = '<?sql '.repeat(700_000);
  expect(parsePage(page)).toEqual([{ kind: 'html', html: page }]);
});
