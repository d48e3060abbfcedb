// Talks to toolcell with the command line of the MCP Inspector, in one era per run: legacy, auto or modern.
//
// The Inspector makes one request per process, so this program starts it once for the list and once for each call.
// It prints a line for each claim that holds, and ends with a non-zero status at the first that does not. It knows
// nothing of any tool: the calls and the expected results are in cases.json, which every client reads.

import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { check, checkDefinitions, main, mismatches, readRun } from './cases.mjs';

/** The revision that each era stands for. */
const ERAS = { legacy: '2025-11-25', auto: '2026-07-28', modern: '2026-07-28' };

/** Exit statuses of the Inspector that mean something here. */
const EXIT = { fine: 0, toolError: 5 };

/** Time that the Inspector waits for the server to start. Its default of 15 s is short on a busy machine. */
const CONNECT_MS_MAX = 60_000;

/** A run of the Inspector takes a second or three, most of it its own start and the server's. */
const RUN_MS_MAX = 2 * CONNECT_MS_MAX;

/** Runs of the Inspector at once: enough to use two cores. */
const RUNS_AT_ONCE = 2;

await main(async () => {
    const run = readRun(ERAS);
    // It keeps a catalog and settings in the home folder; it gets one of its own.
    run.home = mkdtempSync(join(tmpdir(), 'toolcell-inspector-'));
    try {
        await list(run);
        await paging(run);
        await inTurns(run.cases.examples.calls, example => call(run, example));
        await inTurns(run.cases.examples.refusals, refusal => refuse(run, refusal));
        await unknown(run);
        await inTurns(run.cases.examples.resources, declared => read(run, declared));
    } finally {
        rmSync(run.home, { recursive: true, force: true });
    }
});

/** Starts the Inspector with the server of this name, which is served already, or is a toolcell of its own. */
function inspect(run, name, ...options) {
    const launcher = join(run.modules, '@modelcontextprotocol/inspector/clients/launcher/build/index.js');
    const served = name in run.at;
    const target = served ? [run.at[name], '--transport', 'http'] : [run.toolcell, ...run.serve(run.cases[name])];
    const wanted = ['--protocol-era', run.mode, '--connect-timeout', `${CONNECT_MS_MAX}`, '--format', 'json', ...options];
    const settings = { env: { ...process.env, HOME: run.home }, timeout: RUN_MS_MAX, maxBuffer: 64 * 1024 * 1024 };
    return new Promise(resolve => {
        execFile(process.execPath, [launcher, '--cli', ...target, ...wanted], settings, (error, stdout, stderr) => {
            resolve({ status: error ? (error.code ?? error.signal) : EXIT.fine, stdout, stderr });
        });
    });
}

/** The answer of a run that had to end with `status`. */
function answer(ran, status, claim) {
    if (ran.status !== status) check(false, claim, `exit status ${ran.status}, not ${status}`, ran.stdout, ran.stderr);
    return JSON.parse(ran.stdout).result;
}

/** All tools are listed, and their schemas are portable. With --strict the Inspector fails on one that is not. */
async function list(run) {
    const claim = 'the Inspector finds nothing wrong with any schema';
    const { tools } = answer(await inspect(run, 'examples', '--method', 'tools/list', '--strict'), EXIT.fine, claim);
    check(true, claim);
    checkDefinitions(tools, run.cases.examples);
}

/** The Inspector joins the pages of a long list. */
async function paging(run) {
    const server = run.cases.endless;
    const claim = 'a list of many pages is listed whole';
    const { tools } = answer(await inspect(run, 'endless', '--method', 'tools/list'), EXIT.fine, claim);
    const names = tools.map(tool => tool.name);
    check(names.length > server.pageSize && new Set(names).size === names.length, claim, names);
    check(server.calls.every(endless => names.includes(endless.tool)), 'no tool is lost between pages', names);
}

/** The options that make it call a tool. */
function calling(name, given) {
    return ['--method', 'tools/call', '--tool-name', name, '--tool-args-json', JSON.stringify(given)];
}

/** One call gives what its case expects. */
async function call(run, example) {
    const claim = `${example.tool}: ${example.shows}`;
    const result = answer(await inspect(run, 'examples', ...calling(example.tool, example.arguments)), EXIT.fine, claim);
    const wrong = mismatches(example.result, result);
    check(wrong.length === 0, claim, ...wrong);
}

/** Bad arguments are a result the model can read; the Inspector gives such a result a status of its own. */
async function refuse(run, refusal) {
    const claim = `${refusal.tool}: ${refusal.shows}`;
    const result = answer(await inspect(run, 'examples', ...calling(refusal.tool, refusal.arguments)), EXIT.toolError, claim);
    const wrong = mismatches({ isError: true, ...refusal.result }, result);
    check(wrong.length === 0, claim, ...wrong);
}

/** The manifest's resources are read by their addresses. */
async function read(run, declared) {
    const options = ['--method', 'resources/read', '--uri', declared.uri];
    const { contents } = answer(await inspect(run, 'examples', ...options), EXIT.fine, declared.shows);
    const wrong = mismatches(declared.contents, contents);
    check(wrong.length === 0, declared.shows, ...wrong);
}

/** The Inspector lists before it calls, and does not send a call of a tool that is not listed. */
async function unknown(run) {
    const { status, stderr } = await inspect(run, 'examples', ...calling('no_such_tool', {}));
    const said = stderr.includes('"tool_not_found"');
    check(status === EXIT.toolError && said, 'an unknown tool is not on the list', String(status), stderr);
}

/** Runs `work` over all of `things`, a few at a time. */
async function inTurns(things, work) {
    const left = [...things];
    const turn = async () => {
        while (left.length > 0) await work(left.shift());
    };
    await Promise.all(Array.from({ length: RUNS_AT_ONCE }, turn));
}
