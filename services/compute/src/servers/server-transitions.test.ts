import { readFileSync } from 'node:fs';
import path from 'node:path';
import { serverTransitions, statusesBefore } from './server.rules';

it('the statuses before a status are read from the table', () => {
  expect(statusesBefore('active')).toEqual(['provisioning', 'suspended', 'resizing', 'terminating']);
  expect(statusesBefore('pending')).toEqual([]);
});

it('the README draws the same table', () => {
  const edges = Object.entries(serverTransitions).flatMap(([from, reachable]) =>
    reachable.map((to) => `    ${from} --> ${to}`),
  );
  expect(readFileSync(path.resolve(__dirname, '../../README.md'), 'utf8')).toContain(
    `stateDiagram-v2\n${edges.join('\n')}\n`,
  );
});
