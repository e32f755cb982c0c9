// Where the Hono Worker keeps what has to be exact: one isolate's memory is.

import { MemoryStore } from "tidegate";

export const exact = new MemoryStore();
