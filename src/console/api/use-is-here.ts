import { useEffect, useRef } from 'preact/hooks';

/** Whether what asks is still shown: an answer that comes later must not take a person back to where they were. */
export function useIsHere(): () => boolean {
  const isHere = useRef(true);
  useEffect(
    () => () => {
      isHere.current = false;
    },
    [],
  );
  return () => isHere.current;
}
