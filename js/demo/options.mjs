import { parseArgs } from "node:util";

export const usage = `Usage: npm start -- [--port N] [--host ADDRESS] [--fleet]

  --port N        the port to listen on; 0 takes a free one (default: PORT, else 3000)
  --host ADDRESS  the address to listen on (default: 127.0.0.1, this machine only)
  --fleet         three gateway processes that share a Valkey or Redis, which is started for them`;

/** What the command line and the environment ask for. Throws an Error that names the option and its value. */
export function readOptions(args, env) {
  const { values } = parseArgs({
    args,
    options: {
      port: { type: "string" },
      host: { type: "string", default: "127.0.0.1" },
      fleet: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
    },
  });
  if (values.host === "") throw new Error("--host must be an address or a host name, not empty");
  const [name, text] =
    values.port === undefined ? ["PORT", env.PORT || "3000"] : ["--port", values.port];
  return { ...values, port: readPort(name, text) };
}

function readPort(name, text) {
  const port = Number(text);
  if (!/^\d+$/.test(text) || port > 65_535) {
    throw new Error(`${name} must be a whole number from 0 to 65535, not ${JSON.stringify(text)}`);
  }
  return port;
}
