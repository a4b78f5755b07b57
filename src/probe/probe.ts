/** The probe, as its commands load it. */
export { CASES, probeGateway } from './gateway.ts';
export { failedRun, idsIn, report } from './report.ts';
export { probeService } from './service.ts';
