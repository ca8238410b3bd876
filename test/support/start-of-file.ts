import { forgetPlanted } from './canaries.ts';

// Vitest runs this before each test file; modules live on from file to file, and so would what was planted.
forgetPlanted();
