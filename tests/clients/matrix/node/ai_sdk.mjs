// The MCP client of the AI SDK, row by row, by the tools that it hands to an agent.
//
// Usage: NODE ai_sdk.mjs --folder FOLDER --toolcell BINARY --frameworks FOLDER [--url URL --paged-url URL --restarts]

import { ADA, installed, run, told } from './rows.mjs';

const { createMCPClient, ElicitationRequestSchema } = await installed('@ai-sdk/mcp');
const { Experimental_StdioMCPTransport, StdioMCPTransport = Experimental_StdioMCPTransport } = await installed('@ai-sdk/mcp/mcp-stdio');

await run(async to => {
    const transport = to.url
        ? { type: 'http', url: to.url }
        : new StdioMCPTransport({ command: to.command, args: to.args, env: process.env, stderr: 'ignore' });
    // It falls back after a second otherwise, in which the server has to start.
    if (!to.url) Object.assign(transport, { waitsForProtocolVersionDiscovery: true });
    const client = await createMCPClient({ transport, capabilities: { elicitation: {} } });
    client.onElicitationRequest(ElicitationRequestSchema, async () => ({ action: 'accept', content: ADA }));
    return {
        listedOnly: true,
        elicits: true,
        stopsCalls: to.url !== undefined,
        names: async () => Object.keys(await client.tools()),
        async call(tool, args, abortSignal) {
            const tools = await client.tools();
            return told(await tools[tool].execute(args, { toolCallId: '1', messages: [], abortSignal }));
        },
        async resource(uri) {
            const { resources } = await client.listResources();
            const { contents } = await client.readResource({ uri });
            return { listed: resources.map(found => found.uri), text: contents[0].text };
        },
        async prompt(name, args) {
            const get = client.getPrompt ?? client.experimental_getPrompt;
            return (await get.call(client, { name, arguments: args })).messages[0].content.text;
        },
        close: () => client.close()
    };
});
