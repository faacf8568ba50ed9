/**
 * The system's code of an error (`ENOENT`), or an empty text. It reads the property only, because an error may come
 * from another realm.
 */
export function errorCodeOf(error: unknown): string {
  return typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : '';
}
