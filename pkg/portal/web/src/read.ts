// Reading something from the server for a page.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { failure, type Failure } from "./api";

/** Reads whenever the key changes. The value of the last key stays until the server has answered. */
export function useRead<T>(key: string, read: (stop: AbortSignal) => Promise<T>) {
  const value = useSignal<T | null>(null);
  const error = useSignal<Failure | null>(null);
  const busy = useSignal(true);
  const round = useSignal(0);
  useEffect(() => {
    const stop = new AbortController();
    busy.value = true;
    read(stop.signal).then(
      (v) => {
        if (stop.signal.aborted) return;
        value.value = v;
        error.value = null;
        busy.value = false;
      },
      (e) => {
        if (stop.signal.aborted) return;
        value.value = null;
        error.value = failure(e);
        busy.value = false;
      },
    );
    return () => stop.abort();
  }, [key, round.value]);
  return { value, error, busy, again: () => void round.value++ };
}
