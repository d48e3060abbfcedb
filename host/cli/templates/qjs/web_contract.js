// What packages expect of the web, and QuickJS lacks. Add what yours need: it runs before everything else.

import { write } from "toolcell:mcp/log@1.3.0";

const writes = (level) => (...values) => write(level, values.map(String).join(" "));

globalThis.console = {
  debug: writes("debug"),
  log: writes("info"),
  info: writes("info"),
  warn: writes("warning"),
  error: writes("error"),
};
