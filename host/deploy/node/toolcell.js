#!/usr/bin/env node
// Starts the program that the package for this platform holds, with the same input, output and arguments.
'use strict';
const { spawn } = require('node:child_process');
const { constants } = require('node:os');

const name = `toolcell-${process.platform}-${process.arch}`;
let program;
try {
    program = require.resolve(`${name}/bin/toolcell`);
} catch {
    console.error(`error: the package ${name} is not installed\n\nhint: toolcell runs on Linux, on x64 and arm64; do not omit optional packages`);
    process.exit(3);
}
const child = spawn(program, process.argv.slice(2), { stdio: 'inherit' });
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, () => child.kill(signal));
child.on('error', (error) => {
    console.error(`error: ${program} cannot be started: ${error.message}`);
    process.exit(3);
});
child.on('exit', (code, signal) => process.exit(signal ? 128 + constants.signals[signal] : code));
