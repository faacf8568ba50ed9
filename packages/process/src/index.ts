export { type BoxedChild, type BoxMount, type BoxRight, spawnInBox } from './box';
export { readCommandLine } from './command-line';
export {
  createDurably,
  errorCodeOf,
  isLeftover,
  pointDurably,
  readIfThere,
  syncFolder,
  writeDurably,
} from './durable-file';
export {
  commandLineOf,
  endProcess,
  isSameProcess,
  listProcessesIn,
  type ProcessProof,
  proveProcess,
  waitUntilLeft,
} from './end-process';
export { type FaultMode, faultpoint, faultTokenName, InjectedFault } from './faultpoint';
export { findProgram } from './find-program';
export { findFreePort, isPortFree, startOnFreePort } from './free-port';
export { type ChildExit, type GuardedChild, spawnGuarded } from './guarded-child';
export { type BoxNetwork, detectBoxNetwork, detectIsolation, type Isolation } from './isolation';
export { type Answer, KeptServer, type KeptServerOptions, type RunningServer, waitUntilAnswering } from './kept-server';
export { PriorityThread, type ProcessUse, readNice, readProcessUse, setNice } from './priority';
export { programInBox, programMounts } from './programs';
export { findRedis, startRedis } from './redis';
export { readVariable, SecretFileError, withSecretFiles } from './secret-file';
export {
  clusterAccounts,
  handOver,
  isReachable,
  makePassableFolder,
  makePrivateFolder,
  reachableHome,
  removeServerFolders,
  type ServerHome,
  serverAccount,
  settleHome,
  settlePassword,
  settleSocketFolder,
} from './server-folder';
export { scaled, timeLimit } from './time-outs';
