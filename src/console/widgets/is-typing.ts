/** Whether a key that is pressed is a part of a text, or belongs to a dialog. */
export function isTyping(): boolean {
  return document.activeElement?.closest('input, textarea, select, dialog') instanceof Element;
}
