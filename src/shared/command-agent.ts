/** How the `User-Agent` of the commands of `textgate` begins, by which the audit tells them from other programs. */
export const commandAgent = 'textgate-cli/';
