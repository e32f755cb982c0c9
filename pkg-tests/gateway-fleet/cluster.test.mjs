import { fleetCases } from "./cases.mjs";

fleetCases("cluster");
