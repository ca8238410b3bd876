import { afterAll } from 'vitest';
import { forgetPlanted } from './canaries.ts';
import { beginFile, endFile } from './end-of-file.ts';

// Vitest runs this before each test file; modules live on from file to file, and so would what was planted.
forgetPlanted();
beginFile();
afterAll(endFile);
