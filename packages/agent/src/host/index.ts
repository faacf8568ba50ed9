export { Accounts, firstAccounts } from './accounts';
export { CpuShares, niceOf, type WorkKind } from './cpu-shares';
export { DatabaseAddress, Newcomers, type Verdict } from './database-address';
export { countFolder, countRemoved, type DiskState, DiskWatch, diskStateOf, listProcesses } from './disk-watch';
export { FairPlaces } from './fair-places';
export { carryInTurn, hearInTurn, hearUntil, type InTurn, joinInTurn } from './in-turn';
export { listenStubbornly, PortAllocator } from './ports';
export { runHost } from './run-host';
export { SerialQueue } from './serial-queue';
export {
  type FirstPacket,
  packetHeadBytes,
  readFirstPacket,
  writeFatal,
  writeMysqlError,
  writeStartup,
} from './startup-packet';
