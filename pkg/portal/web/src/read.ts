// Requests of a page: reading something, and changing it.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { failure, type Failure } from "./api";

/**
 * Reads whenever the key changes, at intervals of some milliseconds if they are given, and when asked. A key of null reads nothing. The interval may
 * depend on the last value.
 * The value of the last key stays until the server has answered; an error removes it, but not a value of the same key.
 */
export function useRead<T>(key: string | null, read: (stop: AbortSignal) => Promise<T>, every: number | ((last: T | null) => number) = 0) {
  const value = useSignal<T | null>(null);
  const error = useSignal<Failure | null>(null);
  const busy = useSignal(true);
  const round = useSignal(0);
  const of = useRef<string | null>(null); // the key of the value
  useEffect(() => {
    if (key === null) return;
    const stop = new AbortController();
    let timer = 0;
    const interval = () => (typeof every === "number" ? every : every(value.peek()));
    const ask = async () => {
      clearTimeout(timer);
      if (!document.hidden || of.current !== key) {
        try {
          const v = await read(stop.signal);
          if (stop.signal.aborted) return;
          value.value = v;
          error.value = null;
          of.current = key;
        } catch (e) {
          if (stop.signal.aborted) return;
          if (of.current !== key) value.value = null;
          error.value = failure(e);
        }
        busy.value = false;
      }
      if (interval() > 0) timer = setTimeout(() => void ask(), interval()) as unknown as number;
    };
    const seen = () => {
      if (interval() > 0 && !document.hidden) void ask();
    };
    busy.value = true;
    void ask();
    document.addEventListener("visibilitychange", seen);
    return () => {
      stop.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", seen);
    };
  }, [key, round.value]);
  return { value, error, busy, again: () => void round.value++ };
}

/** Runs changes: whether one runs, and the error of the last one. */
export function useAct() {
  const busy = useSignal(false);
  const error = useSignal<Failure | null>(null);
  const act = async (run: () => Promise<void>) => {
    busy.value = true;
    error.value = null;
    try {
      await run();
    } catch (e) {
      error.value = failure(e);
    } finally {
      busy.value = false;
    }
  };
  return { busy, error, act };
}
