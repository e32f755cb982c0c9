// Ten times as many sockets as in the tests.

import { weather } from "../gateway-fleet/storm.mjs";

const SOCKETS = 20_000;

const left = await weather(SOCKETS);
console.log(`a storm of ${SOCKETS} sockets: ${left.toFixed(0)} bytes left of each`);
