// Talks over HTTP, with the official TypeScript SDK in one mode, to a toolcell that is served already.
//
//     node over_http.mjs --modules NODE_MODULES --url URL --manifest toolcell.toml --mode legacy|auto|2026-07-28
//
// The server has the fixture `good`, by a manifest that this program changes to see the list change. Prints one line
// for each thing it found true and ends with a non-zero status at the first that is not.

import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';

/** The revision that each mode must end up with: the newest that both sides know in that era. */
const NEGOTIATED = { legacy: '2025-11-25', auto: '2026-07-28', '2026-07-28': '2026-07-28' };

const text = { type: 'string' };
const { values: options } = parseArgs({ options: { modules: text, url: text, manifest: text, mode: text } });
const resolver = createRequire(join(options.modules, 'here.mjs'));
const { Client, StreamableHTTPClientTransport, ProtocolError } = await import(
    pathToFileURL(resolver.resolve('@modelcontextprotocol/client'))
);

/** Says the claim, or ends the run with it. */
function check(holds, claim, ...details) {
    if (!holds) {
        console.error(`FAILED ${claim}`, ...details);
        process.exit(1);
    }
    console.log(`ok     ${claim}`);
}

/** Tools are listed and answer; progress arrives; a call that is given up stops. */
async function calls(client) {
    const names = (await client.listTools()).tools.map(tool => tool.name);
    check(names.includes('echo'), 'the tools are listed', names);
    const answer = await client.callTool({ name: 'echo', arguments: { text: 'hello' } });
    check(answer.content[0].text === 'hello', 'a tool answers', answer);
    const reports = [];
    const slow = { name: 'slow', arguments: { steps: 3, step_ms: 50 } };
    const done = await client.callTool(slow, { onprogress: report => reports.push(report.progress) });
    check(done.content[0].text === '3 steps done' && reports[0] === 1, 'progress arrives', reports, done);
    const unknown = await client.callTool({ name: 'no_such_tool', arguments: {} }).catch(error => error);
    check(ProtocolError.isInstance(unknown) && unknown.code === -32602, 'an unknown tool is error -32602', unknown);
    const given = new AbortController();
    const endless = { name: 'slow', arguments: { steps: 1000, step_ms: 20 } };
    const outcome = client
        .callTool(endless, { signal: given.signal, onprogress: () => given.abort('given up') })
        .then(() => false, () => true);
    check(await outcome, 'a call is given up');
    const next = await client.callTool({ name: 'echo', arguments: { text: 'next' } });
    check(next.content[0].text === 'next', 'the next call is answered', next);
}

/** The client hears of another list. */
async function changes(client) {
    const { promise: told, resolve } = Promise.withResolvers();
    client.setNotificationHandler('notifications/tools/list_changed', () => resolve());
    const modern = NEGOTIATED[options.mode] === '2026-07-28';
    const opened = modern ? await client.listen({ toolsListChanged: true }) : undefined;
    if (modern) check(opened.honoredFilter?.toolsListChanged === true, 'listening is acknowledged', opened);
    const manifest = readFileSync(options.manifest, 'utf8');
    writeFileSync(options.manifest, manifest.replace('[components.good]', '[components.good]\nprefix = "new_"'));
    await told;
    check(true, 'the client is told of another list');
    const names = (await client.listTools()).tools.map(tool => tool.name);
    check(names.includes('new_echo'), 'the new list is there', names);
    await opened?.close();
}

const mode = options.mode === '2026-07-28' ? { pin: options.mode } : options.mode;
const client = new Client({ name: 'toolcell-tests', version: '1.0.0' }, { versionNegotiation: { mode } });
const transport = new StreamableHTTPClientTransport(new URL(options.url));
await client.connect(transport);
const revision = client.getNegotiatedProtocolVersion();
check(revision === NEGOTIATED[options.mode], `mode ${options.mode} negotiates ${revision}`);
await calls(client);
await changes(client);
if (!NEGOTIATED[options.mode].startsWith('2026')) {
    await transport.terminateSession();
    check(transport.sessionId === undefined, 'the session is ended');
}
await client.close();
