import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describeConfig } from '@drydock/service-kit/config';
import { serverShape, workerShape } from './config';

it('.env.example shows every variable of both processes, and what it is for', () => {
  const variables = describeConfig({ ...serverShape, ...workerShape });
  const lines = variables.flatMap(({ name, description, required, default: fallback }) => [
    `# ${description}`,
    `${required ? '' : '# '}${name}=${fallback ?? ''}`,
  ]);
  expect(readFileSync(path.resolve(__dirname, '../.env.example'), 'utf8')).toBe(`${lines.join('\n')}\n`);
});
