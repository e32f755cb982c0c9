/**
 * What the core's module that every user has exports, as src/npm has it: functions of numbers. A text or a list of
 * bytes is a length of what the exchange handed over, and -1 none; a text that is answered is its length.
 */
export interface Core {
  readonly memory: { readonly buffer: ArrayBuffer };
  numbers(): number;
  given(bytes: number): number;
  answer(): number;

  check_limit(index: number): number;
  check_limits(count: number): number;
  store_key(storePrefix: number, prefix: number, kind: number, key: number): number;
  duration_ms(text: number): number;
  digest(secret: number, bytes: number): number;
  ip_key(address: number, ipv6Subnet: number): number;

  guard(onStoreError: number): number;
  free_guard(guard: number): void;
  guard_ask(guard: number, now: number): number;
  guard_closed_for(guard: number, now: number): number;
  guard_answered(guard: number): void;
  guard_failed(guard: number, failure: number, now: number): void;
  guard_retry_after(guard: number, now: number): number;

  tables(mostKeys: number, mostResultBytes: number, share: number): number;
  free_tables(store: number): void;
  out(store: number): number;
  size(store: number): number;
  register(store: number, words: number): number;
  unregister(store: number, limiter: number): void;
  try_consume: (
    store: number,
    limiter: number,
    slot: number,
    generation: number,
    cost: number,
    now: number,
  ) => number;
  consume: Core["try_consume"];
  peek: Core["try_consume"];
  refund: Core["try_consume"];
  consume_new(store: number, limiter: number, cost: number, now: number): number;
  ask(store: number, limiter: number, slot: number, generation: number, now: number): number;
  block(store: number, slot: number, generation: number, durationMs: number, now: number): number;
  unblock(store: number, slot: number, generation: number): void;
  reset(store: number, limiter: number, slot: number, generation: number): void;
  generation(store: number, slot: number): number;
  first(store: number, slot: number, generation: number, ttlMs: number, now: number): number;
  claim(
    store: number,
    slot: number,
    generation: number,
    token: number,
    leaseMs: number,
    now: number,
  ): number;
  commit(
    store: number,
    slot: number,
    generation: number,
    token: number,
    ttlMs: number,
    result: number,
    now: number,
  ): number;
  message(store: number, slot: number, generation: number, words: number, now: number): number;
  observe: Core["message"];
  freed_limit(store: number): number;
  freed_message(store: number): number;
  freed_burst(store: number): number;
}
