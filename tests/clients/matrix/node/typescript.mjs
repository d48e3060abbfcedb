// The TypeScript SDK, row by row: the package `@modelcontextprotocol/sdk` 1.17, 1.25 and its newest, and
// `@modelcontextprotocol/client` 2 in both eras.
//
// Usage: NODE typescript.mjs --name NAME --folder FOLDER --toolcell BINARY --modules node_modules --frameworks FOLDER
//                            [--url URL --paged-url URL --restarts]
//
// NAME is typescript-1.17, -1.25, -1.32, -2 or -2-legacy.

import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

import { ADA, installed, options, run, told } from './rows.mjs';

const ME = { name: 'toolcell-tests', version: '1.0.0' };
const CAPABILITIES = { capabilities: { elicitation: { form: {} } } };
const accept = async () => ({ action: 'accept', content: ADA });

/** What both major versions do in the same way. `call` differs in the place of its options. */
function common(client, call, events) {
    return {
        hears: true,
        elicits: true,
        stopsCalls: true,
        async names() {
            const names = [];
            let cursor;
            do {
                const page = await client.listTools(cursor === undefined ? undefined : { cursor });
                names.push(...page.tools.map(tool => tool.name));
                cursor = page.nextCursor;
            } while (cursor !== undefined);
            return names;
        },
        call: async (name, args, signal) => told(await call({ name, arguments: args }, { signal })),
        withProgress: async (name, args) => told(await call({ name, arguments: args }, { onprogress: ({ progress }) => events.progress.push(progress) })),
        async resource(uri) {
            const { resources } = await client.listResources();
            const { contents } = await client.readResource({ uri });
            return { listed: resources.map(found => found.uri), text: contents[0].text };
        },
        async prompt(name, args) {
            await client.listPrompts();
            return (await client.getPrompt({ name, arguments: args })).messages[0].content.text;
        },
        close: () => client.close()
    };
}

const OLD = { 'typescript-1.17': 'sdk-1.17', 'typescript-1.25': 'sdk-1.25', 'typescript-1.32': 'sdk-1.32' }[options.name];

async function first(to, events) {
    const { Client } = await installed(`${OLD}/client/index.js`);
    const { StdioClientTransport } = await installed(`${OLD}/client/stdio.js`);
    const { StreamableHTTPClientTransport } = await installed(`${OLD}/client/streamableHttp.js`);
    const types = await installed(`${OLD}/types.js`);
    const client = new Client(ME, OLD === 'sdk-1.17' ? { capabilities: { elicitation: {} } } : CAPABILITIES);
    client.setRequestHandler(types.ElicitRequestSchema, accept);
    client.setNotificationHandler(types.ToolListChangedNotificationSchema, () => events.changed.resolve());
    await client.connect(to.url ? new StreamableHTTPClientTransport(new URL(to.url)) : new StdioClientTransport({ command: to.command, args: to.args, env: process.env, stderr: 'ignore' }));
    const same = common(client, (params, more) => client.callTool(params, undefined, more), events);
    if (client.experimental?.tasks === undefined) return same;
    return {
        ...same,
        async task(name, args) {
            const stream = client.experimental.tasks.callToolStream({ name, arguments: args }, types.CallToolResultSchema, { task: { ttl: 60_000 } });
            let begun = false;
            for await (const message of stream) {
                if (message.type === 'taskCreated') begun = true;
                if (message.type === 'error') throw message.error;
                if (message.type === 'result' && begun) return told(message.result);
            }
            throw new Error('no task was made');
        }
    };
}

async function second(to, events) {
    const resolver = createRequire(join(options.modules, 'here.mjs'));
    const sdk = name => import(pathToFileURL(resolver.resolve(name)));
    const { Client, StreamableHTTPClientTransport } = await sdk('@modelcontextprotocol/client');
    const { StdioClientTransport } = await sdk('@modelcontextprotocol/client/stdio');
    const modern = options.name === 'typescript-2';
    const client = new Client(ME, { ...CAPABILITIES, versionNegotiation: { mode: modern ? 'auto' : 'legacy' } });
    client.setRequestHandler('elicitation/create', accept);
    client.setNotificationHandler('notifications/tools/list_changed', () => events.changed.resolve());
    await client.connect(to.url ? new StreamableHTTPClientTransport(new URL(to.url)) : new StdioClientTransport({ command: to.command, args: to.args, env: process.env, stderr: 'ignore' }));
    const listening = modern ? await client.listen({ toolsListChanged: true }) : undefined;
    return {
        ...common(client, (params, more) => client.callTool(params, more), events),
        async close() {
            await listening?.close();
            await client.close();
        }
    };
}

await run(OLD === undefined ? second : first);
