import { readVariable, SecretFileError } from '@drydock/process';
import { z } from 'zod';

/**
 * The settings of a process, with one zod schema for each environment variable. `.meta({ description })` tells its
 * purpose; `.meta({ secret: true })` hides its default.
 */
export type ConfigShape = Record<string, z.ZodType>;
export type ConfigOf<Shape extends ConfigShape> = z.infer<z.ZodObject<Shape>>;
export type Environment = Readonly<Record<string, string | undefined>>;

/** The metadata of a schema. It includes the metadata of a schema that `.default()` or `.optional()` wraps. */
function metaOf(schema: z.core.$ZodType | undefined): z.core.GlobalMeta {
  if (schema === undefined) return {};
  const inner = schema instanceof z.ZodDefault || schema instanceof z.ZodOptional ? metaOf(schema.def.innerType) : {};
  return { ...inner, ...z.globalRegistry.get(schema) };
}

export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

/**
 * Reads the environment once, at the start. An empty variable counts as not set. `NAME_FILE` names a file that contains
 * the value of NAME. Throws {@link ConfigError} with every wrong variable, the reason and its purpose. The error never
 * contains the value, which may be a secret.
 */
export function readConfig<const Shape extends ConfigShape>(
  shape: Shape,
  environment: Environment = process.env,
): ConfigOf<Shape> {
  const given = Object.fromEntries(Object.keys(shape).map((name) => [name, readSetting(environment, name)]));
  const parsed = z.object(shape).safeParse(given);
  if (parsed.success) return parsed.data;
  const lines = parsed.error.issues.map((issue) => {
    const name = String(issue.path[0]);
    const why = given[name] === undefined ? 'is not set' : `is not valid (${issue.message})`;
    const { description } = metaOf(shape[name]);
    return `  ${name} ${why}${description === undefined ? '' : `: ${description}`}`;
  });
  throw new ConfigError(`Set these in the environment (.env.example shows them all):\n${lines.join('\n')}`);
}

function readSetting(environment: Environment, name: string): string | undefined {
  try {
    return readVariable(environment, name);
  } catch (error) {
    throw error instanceof SecretFileError ? new ConfigError(error.message) : error;
  }
}

const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : JSON.stringify(value));

export interface VariableDescription {
  name: string;
  description: string;
  required: boolean;
  /** The default in the form of the environment; undefined if there is none, and for a secret. */
  default: string | undefined;
  secret: boolean;
}

/**
 * Describes the variables that {@link readConfig} accepts, in the order of the shape. A test compares `.env.example`
 * with them.
 */
export function describeConfig(shape: ConfigShape): VariableDescription[] {
  return Object.entries(shape).map(([name, schema]) => {
    const meta = metaOf(schema);
    const absent = schema.safeParse(undefined);
    const secret = meta['secret'] === true;
    const fallback = absent.success && !secret ? textOf(absent.data) : undefined;
    return { name, description: meta.description ?? '', required: !absent.success, default: fallback, secret };
  });
}

/** Whether a developer runs the service. Endpoints may be missing then. */
export const isDevelopment = (environment: Environment = process.env): boolean =>
  environment['NODE_ENV'] === 'development';

/**
 * Whether answers are checked against the contract. Tests and development check answers. Production does not, because
 * every microsecond counts.
 */
export const checksReplies = (environment: Environment = process.env): boolean =>
  environment['NODE_ENV'] === 'test' || isDevelopment(environment);
