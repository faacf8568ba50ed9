import { readFileSync } from 'node:fs';
import path from 'node:path';
import { siteTransitions, statusesBefore } from './site.rules';

it('knows no edge that is not in the table', () => {
  expect(statusesBefore('active')).not.toContain('failed');
  expect(statusesBefore('restoring')).toEqual(['active', 'suspended']);
});

it('is what the README draws', () => {
  const edges = Object.entries(siteTransitions).flatMap(([from, reachable]) =>
    reachable.map((to) => `    ${from} --> ${to}`),
  );
  expect(readFileSync(path.resolve(__dirname, '../../README.md'), 'utf8')).toContain(
    `stateDiagram-v2\n${edges.join('\n')}\n`,
  );
});
