import { readFileSync } from 'node:fs';

type Environment = Readonly<Record<string, string | undefined>>;

const suffix = '_FILE';

/** Thrown for a `NAME_FILE` from which no value of NAME can be read. */
export class SecretFileError extends Error {
  override readonly name = 'SecretFileError';
}

/**
 * The value of a variable: its own, or the content of the file that `NAME_FILE` names, trimmed. An empty text counts as
 * not set. Containers get secrets as files, because everybody who may inspect a container can read its environment.
 * @throws {@link SecretFileError} if both are set, and if the file cannot be read
 */
export function readVariable(environment: Environment, name: string): string | undefined {
  const value = environment[name] || undefined;
  const file = environment[name + suffix] || undefined;
  if (file === undefined) return value;
  // An error is thrown when both are set, because one of them may have been forgotten, and an old secret would stay in
  // use unnoticed.
  if (value !== undefined) throw new SecretFileError(`${name} and ${name}${suffix} are both set; unset one`);
  return readSecretFile(name, file) || undefined;
}

/**
 * The environment with each secret that is in a file, for redaction. A file without a value is left out, because the
 * process that needs the variable refuses to start and says why.
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
