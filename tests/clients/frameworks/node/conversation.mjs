// The conversation of ../conversation.py for clients on Node: the same steps and claims, and the reading of the command
// line. Holds no client.

import { readFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';

import { packaged } from './browser.mjs';

const PATIENCE_MS = 60_000;
const LOOK_MS = 20;

export const CITY = { city: 'lisboa', month: 7 };
export const CHART = { kind: 'line', width: 400, height: 200, series: [{ name: 'web', values: [1, 2.5, null, 4] }] };
export const PNG_OF_400_BY_200 = '89504e470d0a1a0a0000000d4948445200000190000000c8';
export const MISSPELT = { city: 'Amstelveen' };
export const ENDLESS = 'nap_forever';
const TOOLS = ['weather_normals', 'chart', ENDLESS, 'version', 'linger'];

const option = { type: 'string' };
export const options = parseArgs({
    options: { toolcell: option, folder: option, url: option, modules: option, frameworks: option, era: option }
}).values;

/** A package of the frameworks' folder. */
export const installed = name => packaged(options.frameworks, name);

/** Prints the claim if it holds; otherwise ends the run with it. */
export function check(holds, claim, ...details) {
    if (!holds) {
        console.error([`FAILED ${claim}`, ...details.map(detail => JSON.stringify(detail)?.slice(0, 2000))].join('\n  '));
        process.exit(1);
    }
    console.log(`ok     ${claim}`);
}

/** The audit's records of this event. The last line may be half written. */
export function records(event) {
    const lines = readFileSync(join(options.folder, 'audit.jsonl'), 'utf8').split('\n').slice(0, -1);
    return lines.map(line => JSON.parse(line)).filter(record => record.event === event);
}

/** The first value of `happened` that is one. Ends the run if there is none in time. */
export async function until(happened, claim) {
    const late = performance.now() + PATIENCE_MS;
    for (;;) {
        const value = await happened();
        if (value) return value;
        if (performance.now() > late) check(false, claim);
        await sleep(LOOK_MS);
    }
}

/** The number of the endless call in the audit, once it runs. */
export const running = () =>
    until(() => records('call.started').find(record => record.tool === ENDLESS)?.id, 'an endless call runs');

/** The audit says that this call was cancelled. */
export async function endsAsCancelled(number) {
    const ended = await until(() => records('call.finished').find(record => record.id === number), 'the call that was given up ends');
    check(ended.outcome === 'cancelled', 'the call that was given up is cancelled', ended);
}

/** Saves another version of the component that is served, and waits until it is. */
export async function replace() {
    renameSync(join(options.folder, 'next.wasm'), join(options.folder, 'tool.wasm'));
    await until(() => records('catalog.replaced').length > 0, 'the component is replaced');
}

/** Every call of this client came in the revision that it is meant to negotiate. */
export function checkRevision(revision) {
    const revisions = new Set(records('call.started').map(record => record.revision));
    check(revisions.size === 1 && revisions.has(revision), `its revision is ${revision}`, [...revisions]);
}

/** Lists, calls, is refused, sees the list change, and gives a call up. */
export async function converse(client) {
    await client.connect();
    const names = await client.names();
    check(TOOLS.every(tool => names.includes(tool)), 'all tools are listed', names);
    await results(client);
    check((await client.call('version', {})).text === 'a', 'the first version answers');
    await replace();
    const changed = await until(async () => (await client.names()).includes('extra') && client.names(), 'the list is the new one');
    check(!changed.includes('linger'), 'the list is the new one', changed);
    check((await client.call('version', {})).text === 'c', 'the new code answers');
    const number = await giveUp(client);
    if (client.stopsCalls) {
        await endsAsCancelled(number);
        check((await client.call('version', {})).text === 'c', 'the connection goes on after a call that was given up');
    }
    await client.close();
    if (!client.stopsCalls) await endsAsCancelled(number);
}

/** A structured result, a picture and an error reach the agent, in the revision that was meant. */
async function results(client) {
    const july = await client.call('weather_normals', CITY);
    const { city, months } = july.structured ?? {};
    check(!july.failed && city === 'Lisbon' && months[0].high === 28, 'a structured result arrives', july);
    const drawn = await client.call('chart', CHART);
    const pictures = drawn.pictures.map(picture => picture.subarray(0, 24).toString('hex'));
    check(pictures.join() === PNG_OF_400_BY_200, 'a picture arrives as its bytes', pictures);
    check(drawn.text.includes('web: 3 values from 1 to 4'), 'its text for the model arrives too', drawn.text);
    const refused = await client.call('weather_normals', MISSPELT);
    const readable = refused.failed && refused.text.includes('did you mean Amsterdam?');
    check(readable, 'an error of a tool is an error that the model can read', refused);
    checkRevision(client.revision);
}

/** Gives up a call that runs. Returns its number in the audit. */
async function giveUp(client) {
    const given = new AbortController();
    const outcome = client.call(ENDLESS, {}, given.signal).then(result => ({ result }), error => ({ error: String(error) }));
    const number = await Promise.race([running(), outcome]);
    check(typeof number === 'number', 'an endless call runs', number);
    given.abort();
    const { result, error } = await outcome;
    check(error !== undefined, 'the program has its call back at once', result);
    return number;
}
