import { problem } from '@drydock/contracts/platform/problem';
import { type Metadata, type MetadataChange, metadataKeysMax } from '@drydock/contracts/platform/values';

/**
 * The metadata after the change. In a change, a text sets the value of a name, null and '' remove the name, and a name
 * that is not given keeps its value. Throws 422 if there are too many names afterwards.
 */
export function changeMetadata(metadata: Metadata, change: MetadataChange = {}): Metadata {
  const changed = new Map<string, string | null>([...Object.entries(metadata), ...Object.entries(change)]);
  const kept = [...changed].flatMap(
    ([name, value]): Array<[string, string]> => (value === null || value === '' ? [] : [[name, value]]),
  );
  if (kept.length <= metadataKeysMax) return Object.fromEntries(kept);
  const detail = `It would be ${kept.length} names; there may be ${metadataKeysMax}.`;
  throw problem('invalid_request', { errors: [{ pointer: '/metadata', code: 'too_big', detail }] });
}
