import { type ConfigShape, describeConfig } from '../process/config';

/**
 * The `.env.example` for this shape: each variable with its description. Variables that need no value are commented
 * out.
 */
export const envExample = (shape: ConfigShape): string =>
  describeConfig(shape)
    .flatMap(({ name, description, required, default: fallback }) => [
      `# ${description}`,
      `${required ? '' : '# '}${name}=${fallback ?? ''}`,
    ])
    .map((line) => `${line}\n`)
    .join('');
