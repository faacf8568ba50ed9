export {
  AddressRefused,
  authorityOf,
  createGuardedAgents,
  isEndpointAllowed,
  isPublicAddress,
  type ResolveAll,
} from './guarded-agent';
