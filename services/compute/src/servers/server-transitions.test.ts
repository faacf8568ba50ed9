import { readFileSync } from 'node:fs';
import path from 'node:path';
import { serverTransitions, statusesBefore } from './server.rules';

it('knows no edge that is not in the table', () => {
  expect(statusesBefore('active')).toEqual(['provisioning', 'suspended', 'resizing', 'terminating']);
  expect(statusesBefore('pending')).toEqual([]);
});

it('is what the README draws', () => {
  const edges = Object.entries(serverTransitions).flatMap(([from, reachable]) =>
    reachable.map((to) => `    ${from} --> ${to}`),
  );
  expect(readFileSync(path.resolve(__dirname, '../../README.md'), 'utf8')).toContain(
    `stateDiagram-v2\n${edges.join('\n')}\n`,
  );
});
