// The command line of the MCP Inspector, row by row. It makes one request a process, and lists with `--strict`: a schema
// that is not portable ends it.
//
// Usage: NODE inspector_cli.mjs --folder FOLDER --toolcell BINARY --modules node_modules [--url URL --paged-url URL]

import { execFile } from 'node:child_process';
import { join } from 'node:path';

import { options, run, told } from './rows.mjs';

const RUN_MS_MAX = 24_000;
const launcher = join(options.modules, '@modelcontextprotocol/inspector/clients/launcher/build/index.js');

await run(async to => {
    const ask = (...more) => new Promise((resolve, reject) => {
        const target = to.url ? [to.url, '--transport', 'http'] : [to.command, ...to.args];
        const settings = { timeout: RUN_MS_MAX, maxBuffer: 64 * 1024 * 1024 };
        execFile(process.execPath, [launcher, '--cli', ...target, '--connect-timeout', '20000', '--format', 'json', ...more], settings, (error, stdout, stderr) => {
            if (stdout.startsWith('{')) resolve({ status: error?.code ?? 0, ...JSON.parse(stdout) });
            else reject(new Error(`status ${error?.code}: ${stderr}`));
        });
    });
    return {
        once: true,
        listedOnly: true,
        absent: { withProgress: 'one request a process' },
        async names() {
            const { status, result, ...rest } = await ask('--method', 'tools/list', '--strict');
            if (status !== 0) throw new Error(`--strict ends with ${status}: ${JSON.stringify(rest)}`);
            return result.tools.map(tool => tool.name);
        },
        call: async (name, args) => told((await ask('--method', 'tools/call', '--tool-name', name, '--tool-args-json', JSON.stringify(args))).result),
        async resource(uri) {
            const { resources } = (await ask('--method', 'resources/list')).result;
            const { contents } = (await ask('--method', 'resources/read', '--uri', uri)).result;
            return { listed: resources.map(found => found.uri), text: contents[0].text };
        },
        async prompt(name, args) {
            const given = Object.entries(args).map(([key, value]) => `${key}=${value}`);
            return (await ask('--method', 'prompts/get', '--prompt-name', name, '--prompt-args', ...given)).result.messages[0].content.text;
        }
    };
});
