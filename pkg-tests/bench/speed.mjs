// Measures one row, in a process of its own, and writes it as JSON.

import { compare } from "./measure.mjs";
import { rows } from "./rows.mjs";

console.log(JSON.stringify(await compare(rows[process.argv[2]]())));
