import { holderOf, parseTokens } from './tokens';

test('an account is known by each of its tokens, and by no other text', () => {
  const tokens = parseTokens('live=a1,sandbox=b1,b2');
  const holders = ['a1', 'b1', 'b2', 'b1,b2', 'c', ''].map((token) => holderOf(token, tokens)?.name);
  expect(holders).toEqual(['live', 'sandbox', 'sandbox', undefined, undefined, undefined]);
});

test.each(['', 'live', '=a', 'live=', 'live=a,', 'live=a,,b'])('"%s" is refused', (text) => {
  expect(() => parseTokens(text)).toThrow('expected name=token');
});
