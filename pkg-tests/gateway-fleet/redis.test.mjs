import { fleetCases } from "./cases.mjs";

fleetCases("redis");
