// What packages expect of the web, and QuickJS lacks. Add what yours need: it runs before everything else.

import { log } from "wasi:logging/logging@0.1.0-draft";

const writes = (level) => (...values) => log(level, "", values.map(String).join(" "));

globalThis.console = {
  debug: writes("debug"),
  log: writes("info"),
  info: writes("info"),
  warn: writes("warn"),
  error: writes("error"),
};
