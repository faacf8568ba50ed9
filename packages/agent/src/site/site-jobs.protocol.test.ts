import { SkippedPaths } from './site-jobs.protocol';

const reason = 'a socket or a device';
const collect = (paths: Iterable<string>): SkippedPaths['result'] => {
  const skipped = new SkippedPaths();
  for (const path of paths) skipped.add({ path, reason });
  return skipped.result;
};

it('counts every path, lists the first 10,000, and puts a front page first however late it was found', () => {
  const { count, paths } = collect([
    ...Array.from({ length: 25_000 }, (_, number) => `sockets/${number}`),
    'index.php',
  ]);
  expect(count).toBe(25_001);
  expect(paths).toHaveLength(10_001);
  expect([paths[0]?.path, paths[1]?.path, paths.at(-1)?.path]).toEqual(['index.php', 'sockets/0', 'sockets/9999']);
});

it('counts every path and lists fewer of them if their names are long, because the list is sent as one line', () => {
  const { count, paths } = collect(Array.from({ length: 5_000 }, (_, number) => `${number}/${'long/'.repeat(800)}`));
  expect(count).toBe(5_000);
  expect(paths.length).toBeGreaterThan(300);
  expect(JSON.stringify(paths).length).toBeLessThan(2_000_000);
});
