import { readFileSync } from 'node:fs';

type Environment = Readonly<Record<string, string | undefined>>;

const suffix = '_FILE';

/** The error for a `NAME_FILE` that names an unreadable file, or that is set together with `NAME`. */
export class SecretFileError extends Error {
  override readonly name = 'SecretFileError';
}

/**
 * Returns a variable's value: its own, or the trimmed content of the file in `NAME_FILE`. An empty value counts as
 * missing. Containers get secrets as files, because everybody who may inspect a container can read its environment.
 * @throws {@link SecretFileError} if both are set, or if the file cannot be read
 */
export function readVariable(environment: Environment, name: string): string | undefined {
  const value = environment[name] || undefined;
  const file = environment[name + suffix] || undefined;
  if (file === undefined) return value;
  // Setting both is an error, because a forgotten variable would keep an old secret in use.
  if (value !== undefined) throw new SecretFileError(`${name} and ${name}${suffix} are both set; unset one`);
  return readSecretFile(name, file) || undefined;
}

/**
 * Returns the environment with the secrets from files, for redaction. A file that cannot be read is ignored, because
 * the process that needs its value refuses to start.
 */
export function withSecretFiles(environment: Environment): Environment {
  const names = Object.keys(environment).filter((name) => name.endsWith(suffix) && name !== suffix);
  const found = names.map((name): [string, string | undefined] => {
    const variable = name.slice(0, -suffix.length);
    try {
      return [variable, readVariable(environment, variable)];
    } catch {
      return [variable, environment[variable]];
    }
  });
  return { ...environment, ...Object.fromEntries(found) };
}

function readSecretFile(name: string, file: string): string {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (error) {
    throw new SecretFileError(
      `${name}${suffix} names a file that cannot be read: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
}
