import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describeConfig } from '@drydock/service-kit/config';
import { serverShape } from './config';

it('.env.example shows every variable, and what it is for', () => {
  const lines = describeConfig(serverShape).flatMap(({ name, description, required, default: fallback }) => [
    `# ${description}`,
    `${required ? '' : '# '}${name}=${fallback ?? ''}`,
  ]);
  expect(readFileSync(path.resolve(__dirname, '../.env.example'), 'utf8')).toBe(`${lines.join('\n')}\n`);
});
