/**
 * The files of packages that the console's modules and its page use: how each is found, by the name under which it is
 * imported.
 */
export const consolePackages: ReadonlyMap<string, string> = new Map([
  ['htm', 'htm'],
  ['htm/preact', 'htm/preact'],
  ['preact', 'preact'],
  ['preact/hooks', 'preact/hooks'],
  // The package's own entry is for CommonJS.
  ['uplot', 'uplot/dist/uPlot.esm.js'],
  ['uplot.css', 'uplot/dist/uPlot.min.css'],
]);
