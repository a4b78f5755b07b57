#!/usr/bin/env node
/** The service alone. `extras/main.ts` runs it with what stands beside it. */
import { run } from './operator/run.ts';

run([]);
