// What the conversations with the Inspector's page share: claims, the audit, the component that is replaced, and the
// reading of the command line.

import { readFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';

const PATIENCE_MS = 60_000;
const LOOK_MS = 20;

export const CITY = { city: 'lisboa', month: 7 };
export const CHART = { kind: 'line', width: 400, height: 200, series: [{ name: 'web', values: [1, 2.5, null, 4] }] };
export const PNG_OF_400_BY_200 = '89504e470d0a1a0a0000000d4948445200000190000000c8';
export const MISSPELT = { city: 'Amstelveen' };
export const ENDLESS = 'nap_forever';

const option = { type: 'string' };
export const options = parseArgs({
    options: { toolcell: option, folder: option, url: option, modules: option, frameworks: option, era: option }
}).values;

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
