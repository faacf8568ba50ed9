import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { describeProblems } from '@drydock/contracts/platform/problems';
import { readCommandLine } from '@drydock/process';

readCommandLine('npm run errors', { options: {} });
writeFileSync(path.resolve(__dirname, '../../../docs/errors.md'), describeProblems());
