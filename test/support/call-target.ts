import { namesInConfig } from '../../src/config/setting-names.ts';
import { describeTarget } from '../../src/domain/diagnosis/call-target.ts';
import type { CallTarget } from '../../src/domain/diagnosis/call-target.ts';

/** The target of an upstream named `local` in a config. */
export function localTarget(url = 'http://127.0.0.1:8000/v1', hasKey = true): CallTarget {
  return describeTarget(new URL(url), hasKey, namesInConfig('local'));
}
