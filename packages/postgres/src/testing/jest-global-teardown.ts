/** Stops what `jest-global-setup` started; both run in the same process. */
export default async function stopSharedCluster(): Promise<void> {
  await globalThis.stopDrydockTestCluster?.();
}
