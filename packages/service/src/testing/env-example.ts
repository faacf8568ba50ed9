import { type ConfigShape, describeConfig } from '../process/config';

/** What the `.env.example` of this shape says: each variable with what it is for, those that need no value commented out. */
export const envExample = (shape: ConfigShape): string =>
  describeConfig(shape)
    .flatMap(({ name, description, required, default: fallback }) => [
      `# ${description}`,
      `${required ? '' : '# '}${name}=${fallback ?? ''}`,
    ])
    .map((line) => `${line}\n`)
    .join('');
