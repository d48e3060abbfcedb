// The rows of ../rows.py for clients on Node: the same conversations and lines. Holds no client.
//
// A client is an object with a method for each thing that it can do; a row whose method is missing is absent.

import { existsSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';

import { packaged } from './browser.mjs';

const PATIENCE_MS = 25_000;
const LOOK_MS = 20;
const PAGED_TOOLS = 18;
const CAUSE_MAX = 300;

const CIRCLE = radius => ({ circle: { center: { x: 1, y: 2 }, radius } });
const LABELS = [['a', 1], ['b', -2]];
const DRAWING = { shape: CIRCLE(3), color: 'red', style: ['dashed'], serial: 7, icon: 'AQI=', labels: LABELS, mark: 'x' };
const ENDLESS = 'nap_forever';
const FORM = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] };
const ASKED = { rounds: [{ who: { form: FORM, message: 'Who?' } }] };
const SKILL = 'skill://charts/SKILL.md';

/** What a person answers to the form. */
export const ADA = { name: 'Ada' };

const option = { type: 'string' };
export const options = parseArgs({
    options: {
        name: option, folder: option, url: option, 'paged-url': option, toolcell: option, modules: option, frameworks: option,
        restarts: { type: 'boolean', default: false }
    }
}).values;

/** A package of the matrix's folder. */
export const installed = name => packaged(options.frameworks, name);

/** The client has no way to do what the row asks. */
export class Absent extends Error {}

/** A claim that does not hold. */
class Failed extends Error {}

function check(holds, claim, ...details) {
    if (!holds) throw new Failed([`not so: ${claim}`, ...details.map(detail => JSON.stringify(detail)?.slice(0, 200))].join(': '));
}

/** The audit's records of this event about the endless tool, from each process. The last line may be half written. */
function records(event, tool) {
    const files = readdirSync(options.folder).filter(name => /^audit\.jsonl(-\d+)?$/.test(name));
    const lines = files.flatMap(name => readFileSync(join(options.folder, name), 'utf8').split('\n').slice(0, -1));
    return lines.map(line => JSON.parse(line)).filter(record => record.event === event && (tool === undefined || record.tool === tool));
}

async function until(happened, claim) {
    const late = performance.now() + PATIENCE_MS * 0.8;
    for (;;) {
        const value = await happened();
        if (value) return value;
        check(performance.now() < late, claim);
        await sleep(LOOK_MS);
    }
}

const target = {
    url: options.url, folder: options.folder, command: options.toolcell, args: ['serve', '--manifest', join(options.folder, 'toolcell.toml')]
};
const paged = {
    ...target, url: options['paged-url'], folder: join(options.folder, 'paged'), args: ['serve', '--manifest', join(options.folder, 'paged/toolcell.toml')]
};

/** A connection for as long as `work` lasts. */
async function connected(kind, to, work) {
    const events = { progress: [], changed: Promise.withResolvers() };
    const client = await kind(to, events);
    try {
        await work(client, events);
    } finally {
        await client.close?.();
    }
}

const need = (client, method, why) => {
    if (client[method] === undefined) throw new Absent(client.absent?.[method] ?? why);
};

/** Has the client read the list, as agents do before they call. The Inspector's command line does so by itself. */
const know = client => (client.once ? undefined : client.names());

const ROWS = {
    list: kind => connected(kind, paged, async client => {
        const names = await client.names();
        check(names.length === PAGED_TOOLS && new Set(names).size === PAGED_TOOLS, `${PAGED_TOOLS} tools in pages of five are listed once`, names.length);
    }),
    call: kind => connected(kind, target, async client => {
        await know(client);
        const july = await client.call('weather_normals', { city: 'lisboa', month: 7 });
        check(!july.failed && july.structured?.months?.[0].high === 28, 'a structured result arrives', july);
        const said = await client.call('echo', { text: 'héllo' });
        check(said.text.includes('héllo'), 'a text arrives', said);
    }),
    'tuple result': kind => connected(kind, target, async client => {
        await client.names(); // with the Inspector: no schema of a tuple is refused
        const same = await client.call('draw_same', { drawing: DRAWING });
        check(!same.failed && JSON.stringify(same.structured?.labels) === JSON.stringify(LABELS), 'tuples arrive as they were sent', same);
    }),
    'typed error': kind => connected(kind, target, async client => {
        await know(client);
        const area = await client.call('draw_area', { shape: CIRCLE(-3) });
        check(area.failed && area.text.includes('negative-radius'), 'the error of a function is one that a model can read', area);
        const city = await client.call('weather_normals', { city: 'Amstelveen' });
        check(city.failed && city.text.includes('did you mean Amsterdam?'), 'the error of a tool is one that a model can read', city);
    }),
    'protocol error': kind => connected(kind, target, async client => {
        await know(client);
        if (client.listedOnly) throw new Absent('calls listed tools only');
        const said = await client.call('no_such_tool', {}).then(result => result.text, error => String(error));
        check(said.includes('Unknown tool: no_such_tool'), 'the error says that there is no such tool', said);
        if (!client.once) check((await client.call('echo', { text: 'again' })).text.includes('again'), 'the connection goes on');
    }),
    progress: kind => connected(kind, target, async (client, events) => {
        need(client, 'withProgress', 'tells nobody of progress');
        await client.names();
        const result = await client.withProgress('slow', { steps: 5, step_ms: 100 });
        check(result.text.includes('5 steps done') && events.progress.length >= 2, 'progress arrives', result, events.progress);
    }),
    resources: kind => connected(kind, target, async client => {
        need(client, 'resource', 'reads no resources');
        const { listed, text } = await client.resource(SKILL);
        check(listed.includes(SKILL), 'the resource is listed', listed);
        check(text.includes('Look at the axes first'), 'its text arrives', text);
    }),
    prompts: kind => connected(kind, target, async client => {
        need(client, 'prompt', 'has no prompts');
        const text = await client.prompt('review', { code: 'x = 1', language: 'Python' });
        check(text === 'Review this Python: x = 1', 'the prompt arrives filled in', text);
    }),
    elicitation: kind => connected(kind, target, async client => {
        if (!client.elicits) throw new Absent('answers no questions of tools');
        await client.names();
        const result = await client.call('ask', ASKED);
        check(result.text.includes('accepted {"name":"Ada"}'), 'the tool has the answer', result);
    }),
    tasks: kind => connected(kind, target, async client => {
        need(client, 'task', 'has no tasks');
        await client.names();
        const result = await client.task('slow_compute', { seconds: 0.2, label: 'it' });
        check(result.text.includes('computed it'), 'the task has its result', result);
    }),
    async reconnect(kind) {
        for (const text of ['one', 'two']) {
            await connected(kind, target, async client => {
                if (client.once) throw new Absent('one request a process');
                await client.names();
                check((await client.call('echo', { text })).text.includes(text), `connection ${text} answers`);
            });
            const restart = join(options.folder, 'restart');
            if (text === 'one' && options.restarts) {
                writeFileSync(restart, '');
                await until(() => !existsSync(restart), 'the server is started anew');
            }
        }
    },
    async cancel(kind) {
        const count = event => records(event, ENDLESS).length;
        const before = count('call.started');
        let stops;
        await connected(kind, target, async client => {
            if (client.once) throw new Absent('cannot give a call up');
            stops = client.stopsCalls;
            await client.names();
            const given = new AbortController();
            let over = false;
            const outcome = client.call(ENDLESS, {}, given.signal).then(result => ({ result }), error => ({ error: String(error) })).finally(() => (over = true));
            await until(() => over || count('call.started') > before, 'an endless call runs');
            check(!over, 'an endless call runs', over && (await outcome));
            given.abort();
            check((await outcome).error !== undefined, 'the program has its call back at once');
            if (!stops) return;
            await until(() => count('call.finished') > before, 'the call ends when it is given up');
            check((await client.call('echo', { text: 'still' })).text.includes('still'), 'the connection goes on');
        });
        await until(() => count('call.finished') > before, 'the call ends with the connection');
        const ended = records('call.finished', ENDLESS).at(-1).outcome;
        check(ended === 'cancelled', 'the call is cancelled', ended);
        if (!stops) throw new Absent('says nothing: the call ends with the connection');
    },
    async list_changed(kind) {
        let hears;
        await connected(kind, target, async (client, events) => {
            if (client.once) throw new Absent('one request a process');
            hears = client.hears;
            await client.names();
            check((await client.call('version', {})).text === 'a', 'the first version answers');
            renameSync(join(options.folder, 'next.wasm'), join(options.folder, 'tool.wasm'));
            if (hears) {
                const heard = await Promise.race([events.changed.promise.then(() => true), sleep(PATIENCE_MS * 0.6, false, { ref: false })]);
                check(heard, 'it hears of the changed list');
            }
            await until(() => records('catalog.replaced').length > 0, 'the component is replaced');
            await until(async () => (await client.names()).includes('extra'), 'the list that is read again is the new one');
            check((await client.call('version', {})).text === 'c', 'the new code answers');
        });
        if (!hears) throw new Absent('does not listen: the list is new when it is read again');
    }
};

/** A result in the form of the rows. */
export const told = ({ content, structuredContent, isError }) => ({
    text: content.filter(part => part.type === 'text').map(part => part.text).join('\n'),
    structured: structuredContent,
    failed: isError === true
});

/** Each row in turn, with a client of its own. */
export async function run(kind) {
    for (const [row, work] of Object.entries(ROWS)) {
        let timer;
        const late = new Promise((_, reject) => {
            timer = setTimeout(() => reject(new Failed(`hangs: not done in ${PATIENCE_MS / 1000} s`)), PATIENCE_MS);
        });
        const told = { row, outcome: 'passed', cause: '' };
        try {
            await Promise.race([work(kind), late]);
        } catch (error) {
            told.outcome = error instanceof Absent ? 'absent' : 'failed';
            told.cause = (error instanceof Absent || error instanceof Failed ? error.message : String(error)).slice(0, CAUSE_MAX);
        }
        clearTimeout(timer);
        console.log(JSON.stringify(told));
    }
    process.exit(0);
}
