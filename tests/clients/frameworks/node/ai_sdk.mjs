// Talks to toolcell with the MCP client of the AI SDK: the conversation of ../conversation.py, by the tools that it hands
// to an agent.
//
// Usage: NODE ai_sdk.mjs --toolcell BINARY --folder FOLDER --modules node_modules --frameworks FOLDER [--url URL]

import { check, converse, installed, options } from './conversation.mjs';

const { createMCPClient } = await installed('@ai-sdk/mcp');
const { StdioMCPTransport } = await installed('@ai-sdk/mcp/mcp-stdio');

let client;

/** A result in the form of the conversation. */
const told = ({ content, structuredContent, isError }) => ({
    text: content.filter(part => part.type === 'text').map(part => part.text).join('\n'),
    structured: structuredContent,
    pictures: content.filter(part => part.type === 'image').map(part => Buffer.from(part.data, 'base64')),
    failed: isError === true
});

await converse({
    revision: '2026-07-28',
    hears: false,
    stopsCalls: options.url !== undefined,
    async connect() {
        const serve = ['serve', '--manifest', `${options.folder}/toolcell.toml`];
        const transport = options.url
            ? { type: 'http', url: options.url }
            : new StdioMCPTransport({ command: options.toolcell, args: serve, stderr: 'inherit' });
        // It falls back after a second otherwise, in which the server has to start.
        if (!options.url) Object.assign(transport, { waitsForProtocolVersionDiscovery: true });
        client = await createMCPClient({ transport });
    },
    async names() {
        return Object.keys(await client.tools());
    },
    async call(tool, args, signal) {
        const tools = await client.tools();
        check(tools[tool] !== undefined, `${tool} is a tool of the agent`);
        return told(await tools[tool].execute(args, { toolCallId: '1', messages: [], abortSignal: signal }));
    },
    close: () => client.close()
});
