import { TidegateError } from "../errors.js";

export function nonsense(): TidegateError {
  return new TidegateError("store", "the server's reply is not one of ours");
}
