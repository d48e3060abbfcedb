// Talks to toolcell with the official TypeScript SDK, in one mode per run: legacy, auto or 2026-07-28 (pinned).
//
// With --reload FOLDER it serves FOLDER/toolcell.toml, whose tool returns its version. It saves the versions of FOLDER/next
// over the component: one with an equal list, and one with another list. With --asking FOLDER it serves
// FOLDER/toolcell.toml, whose tools ask, and answers as a person, a model and an editor would.
//
// It prints a line for each claim that holds, and ends with a non-zero status at the first that does not. It knows
// nothing of any tool: the calls and the expected results are in cases.json, which every client reads.

import { renameSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

import { check, checkDefinitions, main, mismatches, readRun } from './cases.mjs';

/** The revision that each mode must negotiate: the newest that both sides know in that era. */
const NEGOTIATED = { legacy: '2025-11-25', auto: '2026-07-28', '2026-07-28': '2026-07-28' };

const INVALID_PARAMS = -32602;

/** No call of the cases takes a second; a call that takes this long hangs. */
const REQUEST_MS_MAX = 30_000;

/** Time for a server to end after its input did, on a busy machine. */
const CLOSE_MS_MAX = 30_000;

/** The questions that the asking tool is given: two at once, then a third. */
const ASKED = [
    { who: { form: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] } }, where: {} },
    { poem: { sampling: { messages: [{ role: 'user', content: { type: 'text', text: 'A poem' } }], maxTokens: 9 } } },
];

/** The log levels of MCP that a modern request names in its `_meta`. */
const LOG_LEVEL_KEY = 'io.modelcontextprotocol/logLevel';

/**
 * The SDK's error for progress that it read together with its call's result. It settles the call at once and passes
 * notifications on a moment later, when no call waits for them any more. Progress of a running call does arrive,
 * which `giveUp` checks.
 */
const LATE_PROGRESS = /Received a progress notification for an unknown token/;

await main(async () => {
    const run = readRun(NEGOTIATED);
    // The SDK is installed outside the clone, so that Node does not find it by name from here.
    const resolver = createRequire(join(run.modules, 'here.mjs'));
    const sdk = name => import(pathToFileURL(resolver.resolve(name)));
    const library = { ...(await sdk('@modelcontextprotocol/client')), ...(await sdk('@modelcontextprotocol/client/stdio')) };
    if (run.reload !== undefined) return reload(run, library);
    if (run.asking !== undefined) return asking(run, library);
    await examples(run, library);
    await cancellation(run, library);
});

/**
 * A client of the server with this name: one that is served already, or a toolcell of its own. It collects errors that
 * the SDK only reports aside; there must be none. It also keeps the HTTP requests that have no head of an answer yet.
 */
async function connect(run, name, { Client, StdioClientTransport, StreamableHTTPClientTransport }, options = {}) {
    const mode = run.mode === '2026-07-28' ? { pin: run.mode } : run.mode;
    const client = new Client({ name: 'toolcell-tests', version: '1.0.0' }, { ...options, versionNegotiation: { mode } });
    const asides = [];
    client.onerror = error => asides.push(String(error));
    const pending = new Set();
    const kept = (url, request) => {
        const answer = fetch(url, request);
        pending.add(answer);
        const settled = () => pending.delete(answer);
        answer.then(settled, settled);
        return answer;
    };
    const folder = { reload: run.reload, asking: run.asking }[name];
    const server = folder === undefined ? run.cases[name] : { manifest: join(folder, 'toolcell.toml') };
    const transport =
        name in run.at
            ? new StreamableHTTPClientTransport(new URL(run.at[name]), { fetch: kept })
            : new StdioClientTransport({ command: run.toolcell, args: run.serve(server), stderr: 'inherit' });
    await client.connect(transport, { timeout: REQUEST_MS_MAX });
    return { client, asides, pending };
}

/** Every example tool is listed, answers, and refuses the calls that it must. */
async function examples(run, library) {
    const server = run.cases.examples;
    const { client, asides, pending } = await connect(run, 'examples', library);
    const revision = client.getNegotiatedProtocolVersion();
    check(revision === run.revision, `mode ${run.mode} negotiates ${run.revision}`, revision);
    check(client.getServerCapabilities()?.tools?.listChanged === true, 'the server announces list changes');
    checkDefinitions((await client.listTools()).tools, server);
    for (const example of server.calls) await call(client, example);
    await refusals(client, server, library);
    await resources(client, server);
    await subscription(client, run);
    if (!run.modern) {
        await client.ping();
        check(true, 'ping is answered');
    }
    await close(client, { asides, pending });
}

/** A long list comes in pages of the manifest's size, and the SDK joins them. */
async function paging(client, server) {
    const names = page => page.tools.map(tool => tool.name);
    const together = names(await client.listTools());
    const pages = [];
    for (let cursor; pages.length === 0 || cursor !== undefined; ) {
        const page = await client.request({ method: 'tools/list', params: cursor === undefined ? {} : { cursor } });
        pages.push(names(page));
        cursor = page.nextCursor;
    }
    const full = pages.every((page, at) => page.length === server.pageSize || (at === pages.length - 1 && page.length > 0));
    check(pages.length > 1 && full, `${together.length} tools come in pages of ${server.pageSize}`, pages);
    check(pages.flat().join() === together.join(), 'the SDK finds the same tools by itself', pages, together);
    check(new Set(together).size === together.length, 'no tool is on two pages', pages);
    check(server.calls.every(endless => together.includes(endless.tool)), 'no tool is lost between pages', pages);
}

/**
 * One call gives the result that its case expects. The SDK itself checks structured content against the output schema.
 *
 * Progress is requested but not counted here: see `LATE_PROGRESS`.
 */
async function call(client, example) {
    const parameters = { name: example.tool, arguments: example.arguments };
    const result = await client.callTool(parameters, { timeout: REQUEST_MS_MAX, onprogress: () => {} });
    const wrong = mismatches(example.result, result);
    check(wrong.length === 0, `${example.tool}: ${example.shows}`, ...wrong);
}

/** Bad arguments are a result the model can read; an unknown tool is an error of the protocol. */
async function refusals(client, server, { ProtocolError }) {
    for (const refusal of server.refusals) {
        const result = await client.callTool({ name: refusal.tool, arguments: refusal.arguments });
        const wrong = mismatches({ isError: true, ...refusal.result }, result);
        check(wrong.length === 0, `${refusal.tool}: ${refusal.shows}`, ...wrong);
    }
    const answer = await client.callTool({ name: 'no_such_tool', arguments: {} }).catch(error => error);
    const known = ProtocolError.isInstance(answer) && answer.code === INVALID_PARAMS;
    const said = known && answer.message.endsWith('Unknown tool: no_such_tool');
    check(said, 'an unknown tool is error -32602', answer, answer.message);
}

/** The manifest's resources are listed as templates, and can be read. */
async function resources(client, server) {
    const templates = (await client.listResourceTemplates()).resourceTemplates.map(found => found.uriTemplate);
    for (const declared of server.resources) {
        check(templates.includes(declared.template), 'the template is listed', templates);
        const { contents } = await client.readResource({ uri: declared.uri });
        const wrong = mismatches(declared.contents, contents);
        check(wrong.length === 0, declared.shows, ...wrong);
    }
}

/** The server promises list changes to a modern client; a legacy one cannot ask for the promise. */
async function subscription(client, run) {
    const opened = await client.listen({ toolsListChanged: true }).catch(error => error);
    if (!run.modern) {
        check(opened.code === 'METHOD_NOT_SUPPORTED_BY_PROTOCOL_VERSION', 'list changes need no subscription in the legacy era', opened);
        return;
    }
    check(opened.honoredFilter?.toolsListChanged === true, 'listening for list changes is acknowledged', opened);
    await opened.close();
    check((await opened.closed) === 'local', 'listening ends when the client says so');
}

/** A cancelled call stops: the connection goes on, and nothing delays the server's end. */
async function cancellation(run, library) {
    const server = run.cases.endless;
    const { client, asides, pending } = await connect(run, 'endless', library);
    const lines = [];
    client.setNotificationHandler('notifications/message', notification => void lines.push(notification.params.data));
    if (!run.modern) await client.setLoggingLevel('debug');
    await paging(client, server);
    for (const endless of server.calls) await giveUp(client, endless, server.meanwhile, run);
    check(lines.length > 0, "the tool's log reaches the client");
    await call(client, server.meanwhile);
    await close(client, { asides, pending });
}

/** Calls, sees another call answered while this one runs, and cancels. */
async function giveUp(client, endless, meanwhile, run) {
    const given = new AbortController();
    const { promise: running, resolve: runs } = Promise.withResolvers();
    const meta = run.modern ? { _meta: { [LOG_LEVEL_KEY]: 'debug' } } : {};
    let over = false;
    const outcome = client
        .callTool(
            { name: endless.tool, arguments: endless.arguments, ...meta },
            { signal: given.signal, timeout: REQUEST_MS_MAX, onprogress: runs }
        )
        .then(result => ({ result }), error => ({ error }))
        .finally(() => (over = true));
    if (endless.progress) {
        await Promise.race([running, outcome]);
        check(!over, `${endless.tool}: progress arrives while it runs`, await Promise.race([outcome, undefined]));
    }
    await call(client, meanwhile);
    given.abort('given up');
    const { result, error } = await outcome;
    check(error !== undefined, `${endless.tool}: ${endless.shows}`, result);
}

/** A saved version answers. A changed list is announced once; new code with an equal list is not announced. */
async function reload(run, library) {
    const { client, asides, pending } = await connect(run, 'reload', library);
    const version = async () => {
        const answer = await client.callTool({ name: 'version', arguments: {} });
        if (answer.isError) check(false, 'the version is said', answer);
        return answer.content[0].text;
    };
    const names = async () => (await client.listTools()).tools.map(tool => tool.name).join();
    const save = next => renameSync(join(run.reload, 'next', next), join(run.reload, 'components/tool.wasm'));
    const { promise: changed, resolve: hear } = Promise.withResolvers();
    let heard = 0;
    client.setNotificationHandler('notifications/tools/list_changed', () => {
        heard += 1;
        hear();
    });
    const subscription = run.modern ? await client.listen({ toolsListChanged: true }) : undefined;
    check((await version()) === 'a' && (await names()) === 'version,linger', 'the first version answers');
    save('same_list.wasm');
    const late = performance.now() + REQUEST_MS_MAX;
    // Replicas take new code a moment after one another: nine answers in a row are of the new one.
    for (let row = 0; row < 9; row = (await version()) === 'a' ? 0 : row + 1) {
        if (performance.now() > late) check(false, 'other code answers in time');
    }
    check((await version()) === 'b', 'other code answers');
    check(heard === 0 && (await names()) === 'version,linger', 'nobody hears of other code behind the same list', heard);
    save('other_list.wasm');
    await changed;
    check((await version()) === 'c', 'the first call after the notification meets the new code');
    check((await names()) === 'version,extra', 'the list is the new one');
    check(heard === 1, 'the other list is heard of once', heard);
    await subscription?.close();
    await close(client, { asides, pending });
}

/** A tool asks the person, the model and the client; a call is confirmed or declined. */
async function asking(run, library) {
    const options = { capabilities: { elicitation: { form: {} }, sampling: {}, roots: {} } };
    const { client, asides, pending } = await connect(run, 'asking', library, options);
    const said = [];
    let decision = 'accept';
    client.setRequestHandler('elicitation/create', async ({ params }) => {
        said.push(params.message);
        return { action: decision, content: 'name' in params.requestedSchema.properties ? { name: 'Ada' } : {} };
    });
    client.setRequestHandler('sampling/createMessage', async ({ params }) => {
        const content = [params.messages[0].content].flat()[0];
        return { role: 'assistant', model: 'm', content: { type: 'text', text: `${content.text}!` } };
    });
    client.setRequestHandler('roots/list', async () => ({ roots: [{ uri: 'file:///work' }] }));
    const text = (await client.callTool({ name: 'ask', arguments: { rounds: ASKED } })).content[0].text;
    check(text.startsWith('roots file:///work, accepted {"name":"Ada"}; message {'), 'the tool has the answers', text);
    check(text.includes('A poem!'), 'the model is asked what the tool asks', text);
    check(said.join() === 'The tool "ask" asks: Who?', 'the person is told who asks', said);
    const approved = await client.callTool({ name: 'echo', arguments: { text: 'hello' } });
    check(approved.content[0].text === 'hello', 'an approved call runs', approved);
    check(said.at(-1).startsWith('Allow the tool "echo"'), 'the person is asked first', said);
    decision = 'decline';
    const declined = await client.callTool({ name: 'echo', arguments: { text: 'hello' } });
    const wanted = { isError: true, content: [{ text: 'the person declined: "echo" was not run' }] };
    const wrong = mismatches(wanted, declined);
    check(wrong.length === 0, 'a declined call does not', ...wrong);
    await close(client, { asides, pending });
}

/** The SDK sends SIGTERM two seconds after it closed stdin. So the input ends here, and nobody sends that. */
async function ended(server) {
    if (server === undefined) return;
    const exit = new Promise(resolve => server.once('exit', (code, signal) => resolve([code, signal])));
    server.stdin.end();
    const late = new Promise(resolve => setTimeout(resolve, CLOSE_MS_MAX, ['late', null]).unref());
    const [code, signal] = await Promise.race([exit, late]);
    check(code === 0, 'the server ends by itself when its input does', code, signal);
}

/**
 * Every request is answered, also one whose call was given up. The SDK aborts those that are not when it closes, and
 * reports each as an error.
 */
async function answered(pending) {
    const late = new Promise(resolve => setTimeout(resolve, CLOSE_MS_MAX, 'late').unref());
    while (pending.size > 0) {
        const outcome = await Promise.race([Promise.allSettled(pending), late]);
        if (outcome === 'late') check(false, 'every request is answered', `${pending.size} are not`);
    }
}

/** The server ends by itself, soon after its input does; over HTTP, the connection ends. The SDK has reported no error on the way. */
async function close(client, { asides, pending }) {
    await answered(pending);
    const closing = performance.now();
    if (client.transport.sessionId !== undefined) {
        await client.transport.terminateSession();
        check(client.transport.sessionId === undefined, 'the session is ended');
    }
    await ended(client.transport._process);
    await client.close();
    const took = performance.now() - closing;
    check(took < CLOSE_MS_MAX, 'the client is soon done when it closes', `${took.toFixed()} ms`);
    const objections = asides.filter(aside => !LATE_PROGRESS.test(aside));
    check(objections.length === 0, 'the SDK objects to nothing', ...objections);
}
