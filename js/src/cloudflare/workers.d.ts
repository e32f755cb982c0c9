declare module "cloudflare:workers" {
  /** Missing from a workerd older than August 2025. */
  export const waitUntil: ((promise: Promise<unknown>) => void) | undefined;
}
