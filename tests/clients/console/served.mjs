// What an operator decides on a real server, each decision by what it changes: `check.py` has its manifest. Must not hold:
// who gets in, what other pages try, the search in the audit.

import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';

import { checkAudit } from './audit.mjs';
import { call, said } from './client.mjs';
import { checkElsewhere } from './elsewhere.mjs';
import {
    LIGHT, TWO_WINDOWS, VIEWS, WINDOWS, check, checkPage, equal, isQuiet, isTold, load, open, options, part, says, sees, tabTo, textOf, until,
} from './look.mjs';
import { checkSigning } from './signing.mjs';

const manifest = () => readFileSync(join(options.folder, 'toolcell.toml'), 'utf8');

/** A page that tools fetch. */
export async function site() {
    const server = createServer((_, answer) => answer.setHeader('content-type', 'text/html').end('<title>News</title><p>The shop is open.</p>'));
    await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));
    return { server, address: `http://127.0.0.1:${server.address().port}` };
}

/** Calls a tool with the form of its page. */
export async function tries(page, tool, ...texts) {
    await load(page, `/tools/${tool}`);
    for (const [at, text] of texts.entries()) await page.locator(`#argument-${at}`).fill(text);
    await page.getByRole('button', { name: 'Call it' }).click();
    await page.locator('#result').waitFor();
    return textOf(page.locator('#result'));
}

/** The card of a call that waits for a person. */
const waiting = (page, tool) => page.locator('#approvals-waiting article', { hasText: `${tool} for eve` });

/** A denied request is copied, muted, shown again and allowed: then the same call succeeds. */
async function checkDenials({ context, page }) {
    const { server, address } = await site();
    const asked = `GET ${address}/news`;
    const denied = await tries(page, 'fetch_page', `${address}/news`);
    check(denied.includes(`denied: ${asked}`), `a call that is denied says so: ${denied}`);

    await load(page, '/denials');
    const card = page.locator('#denials-list > article');
    equal(await textOf(card.locator('h2')), `http ${asked}`, 'the request that was denied');
    const rule = `[components.fetch.network]\nprivate = ["${new URL(address).host}"]\nhttp = ["${asked}"]`;
    await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: new URL(options.url).origin });
    await card.getByRole('button', { name: 'Copy the rule' }).click();
    await sees(page.locator('#said', { hasText: 'Copied.' }), 'a person who hears the page is told of the copy');
    equal(await page.evaluate(() => navigator.clipboard.readText()), rule, 'the copied rule');

    await page.getByRole('button', { name: 'Mute these denials', exact: true }).click();
    await isTold(page, 'Muted until the server ends.');
    equal([await card.count(), await page.locator('#muted article').count()], [0, 1], 'cards, and muted ones');
    await page.locator('#muted summary').click();
    await page.getByRole('button', { name: 'Unmute these denials' }).click();
    await isTold(page, 'Shown again.');
    equal([await card.count(), await page.locator('#muted').count()], [1, 0], 'cards, and muted ones, afterwards');

    check(!manifest().includes(asked), 'nothing is allowed before somebody allows it');
    await page.getByRole('button', { name: 'Add to the manifest' }).click();
    await isTold(page, /^The rule is written\. /);
    equal([await card.count(), await page.locator('#allowed article').count()], [0, 1], 'cards, and those that are allowed since');
    check(manifest().includes(`http = ["${asked}"]`), `the rule is in the manifest: ${manifest()}`);
    const fetched = await tries(page, 'fetch_page', `${address}/news`);
    check(fetched.includes('The shop is open.'), `the call succeeds once it is allowed: ${fetched}`);
    await sees(page.locator('tr', { hasText: new URL(address).host }), 'the page of the tool shows what it reaches now');
    server.close();
}

/** Calls wait in the page that is open, and a person declines, allows with the keyboard alone, or remembers. */
async function checkApprovals({ page }) {
    const token = options['other-token'];
    await load(page, '/approvals');
    await says(page, 'No call waits for a person.');
    const declined = call(token, 'read', { text: '5 ft 11 in' });
    await sees(waiting(page, 'read'), 'a call that waits appears by itself');
    equal((await page.title()).slice(0, 13), '(1) Approvals', 'the title says how many calls wait');
    for (const window of WINDOWS) await checkPage(window, '/approvals', { shows: 'read for eve' });
    check((await textOf(waiting(page, 'read').locator('pre'))).includes('5 ft 11 in'), 'the arguments are shown');
    await waiting(page, 'read').getByRole('button', { name: 'Decline call' }).click();
    await isTold(page, /^Call \d+ of "read" is declined\.$/);
    equal(said(await declined), 'an operator declined: "read" was not run', 'a call that was declined');
    await sees(page.locator('#approvals-decided tr', { hasText: 'declined' }), 'what was decided is listed');

    const allowed = call(token, 'read', { text: '5 ft 11 in' });
    await sees(waiting(page, 'read'), 'the next call waits');
    await page.locator('h1').click();
    await tabTo(page, waiting(page, 'read').getByRole('button', { name: 'Allow once' }), 'Allow once');
    await page.keyboard.press('Enter');
    await isTold(page, /^Call \d+ of "read" is allowed\.$/);
    check(said(await allowed).includes('foot'), `a call that was allowed is answered: ${said(await allowed)}`);

    const quantity = { quantity: { value: 1, unit: 'metre' } };
    const first = call(token, 'everywhere', quantity);
    await waiting(page, 'everywhere').getByRole('button', { name: 'Allow for 10 min' }).click();
    await isTold(page, /^Call \d+ of "everywhere" is allowed\.$/);
    check((await first).result?.isError !== true, `a call that was allowed for some time is answered: ${said(await first)}`);
    check((await call(token, 'everywhere', quantity)).result?.isError !== true, 'the next one does not wait');
    equal(await page.locator('#approvals-waiting article').count(), 0, 'calls that wait');
}

/** A call that runs is shown, and ended. */
async function checkStop({ page }) {
    const answer = call(options['other-token'], 'slow', { steps: 1_000_000, step_ms: 100 });
    await load(page, '/');
    const row = page.locator('#now-running tr', { hasText: 'slow' });
    await sees(row.locator('.chip', { hasText: 'runs' }), 'a call that runs appears by itself');
    for (const window of TWO_WINDOWS) await checkPage(window, '/', { shows: 'slow good' });
    const number = (await textOf(row.getByRole('button'))).match(/\d+/)[0];
    await row.getByRole('button', { name: `Stop call ${number}` }).click();
    await isTold(page, `Call ${number} of "slow" is being ended.`);
    equal(said(await answer), 'the operator ended the call', 'a call that was ended');
    await sees(page.locator('#now-running', { hasText: 'No call runs.' }), 'it does not run any more');
    await checkPage(LIGHT, `/audit/calls/now.${number}`, { heading: `Call ${number} cancelled`, shows: 'the operator ended the call' });
}

/** A form has a field for each value of a typed tool: choices behind references, a group, and null. */
async function checkForm({ page }) {
    await load(page, '/tools/convert');
    await page.locator('#argument-0').fill('3');
    await page.locator('#argument-1').selectOption('foot');
    await page.locator('#argument-2').selectOption('inch');
    await page.getByRole('button', { name: 'Call it' }).click();
    check((await textOf(page.locator('#result'))).includes('36'), 'a call from fields is answered');
    // What fields do not say is sent as JSON, and stays there.
    const sent = '{"value":3,"from":"foot","to":"inch","beside":1}';
    await page.locator('.as-json summary').click();
    await page.locator('#whole').fill(sent);
    await page.getByRole('button', { name: 'Send this JSON' }).click();
    await says(page, 'beside');
    equal(await page.locator('#whole').inputValue(), sent, 'JSON that was sent');
    await load(page, '/tools/everywhere');
    await page.locator('fieldset', { hasText: 'quantity' }).getByLabel('unit').selectOption('kelvin');
    check(await page.locator('fieldset input').isVisible(), 'a group of fields has a frame');
}

/** Charts of the last hour have the calls that were made. */
async function checkHour({ page }) {
    await load(page, '/');
    for (const id of ['now-rates', 'now-times']) await sees(page.locator(`#${id} canvas`), `the chart ${id} is drawn`);
    const ended = await until(() => page.evaluate(() => {
        const { lines, part } = JSON.parse(document.getElementById('now-rates').dataset.lines);
        const sum = lines[0].reduce((sum, rate) => sum + rate * part, 0);
        return sum >= 1 && JSON.parse(document.getElementById('now-times').dataset.lines).lines[1].some(time => time > 0) ? sum : null;
    }), 'calls and their times in the last hour');
    check(ended >= 1, `calls of the last hour: ${ended}`);
}

/** A token is made, copied, used, and revoked. It is shown once. */
async function checkTokens({ page }) {
    await load(page, '/callers');
    await page.locator('#new-token summary').click();
    await page.getByLabel('Caller', { exact: true }).fill('cal');
    await page.getByLabel('Scopes').fill('read write');
    await page.getByRole('button', { name: 'Make a token' }).click();
    const token = await textOf(page.locator('#fresh-token'));
    check(/^toolcell_[0-9a-f]{64}$/.test(token), 'a token is shown');
    await page.getByRole('button', { name: 'Copy the token' }).click();
    await sees(page.locator('#said', { hasText: 'Copied.' }), 'the token is copied');
    equal(await page.evaluate(() => navigator.clipboard.readText()), token, 'the copied token');
    // The server reads its tokens anew within some seconds.
    await until(async () => (await call(token, 'counter_add', { name: 'a' })).status === 200, 'a call with the new token is answered');

    await load(page, '/callers');
    check(!(await page.content()).includes(token), 'the token is shown once');
    const row = page.locator('tr', { hasText: 'cal' }).filter({ hasText: 'read, write' });
    await row.locator('summary').click();
    await row.getByRole('button', { name: 'Revoke this token' }).click();
    await isTold(page, 'Revoked: the server turns it away within some seconds.');
    equal(await row.count(), 0, 'rows of the revoked token');
    await until(async () => (await call(token, 'counter_add', { name: 'a' })).status === 401, 'the revoked token is turned away');
}

/** The next calls of a tool are recorded: the page counts what is left, in every window, and ends it. */
async function checkRecording({ page }) {
    const kept = () => {
        const folder = join(options.folder, 'recordings', 'text');
        return existsSync(folder) ? readdirSync(folder).filter(name => name.endsWith('.jsonl')).map(name => join(folder, name)) : [];
    };
    await load(page, '/tools/text_diff');
    await page.locator('#record-calls').fill('101');
    await page.getByRole('button', { name: 'Record the next calls' }).click();
    check(await page.locator('#record-calls:invalid').isVisible(), 'the form does not take more calls than are allowed');
    await page.locator('#record-calls').fill('2');
    await page.getByRole('button', { name: 'Record the next calls' }).click();
    await isTold(page, 'The next 2 calls are recorded.');
    await says(page, '2 of 2 calls are left.');
    for (const window of WINDOWS) await checkPage(window, '/tools/text_diff', { heading: /^text_diff/, shows: '2 of 2 calls are left.' });
    await tries(page, 'text_diff', 'tea', 'milk');
    await says(page, '1 of 2 calls are left.');
    await load(page, '/tools');
    await sees(page.locator('tr', { hasText: 'text_diff' }).locator('.chip', { hasText: 'recording' }), 'the list of tools shows what is recorded');
    await load(page, '/tools/text_diff');
    await page.getByRole('button', { name: 'End the recording' }).click();
    await isTold(page, 'Ended: 1 of 2 calls were recorded.');
    await tries(page, 'text_diff', 'tea', 'water');
    const files = await until(() => kept().length > 0 && kept(), 'a recording in the folder');
    equal(files.length, 1, 'recordings');
    equal(statSync(files[0]).mode & 0o777, 0o600, 'who may read a recording');
    check(readFileSync(files[0], 'utf8').includes('milk'), 'the call that was recorded');
    await load(page, '/tools/convert');
    await says(page, 'counts like any other there');
}

/** Pages of tools: one with grants says what it can reach, and in which line of the manifest that stands. */
async function checkReach({ page }) {
    await load(page, '/tools/notes_write');
    const reached = page.locator('tr', { hasText: '/notes' });
    await sees(reached, 'a folder that a tool reaches');
    await load(page, '/tools/counter_add');
    await sees(page.locator('tr', { hasText: 'state' }), 'the state that a tool reaches');
    await load(page, '/tools/slow');
    await says(page, 'It reaches nothing outside its sandbox');
}

export async function checkServed() {
    const opened = await open(LIGHT);
    for (const decides of [checkReach, checkRecording, checkDenials, checkApprovals, checkStop, checkForm, checkHour, checkTokens, checkAudit]) await part(decides.name, () => decides(opened));
    await isQuiet(opened, 'decisions');
    await opened.context.close();
    const further = {
        '/tools/fetch_page': 'fetch_page Fetch a web page',
        '/tools/notes_write': 'notes_write Write a note',
        '/tools/convert': 'convert',
    };
    await part('views', async () => {
        for (const window of WINDOWS) {
            for (const [path, heading] of Object.entries({ ...VIEWS, ...further })) await checkPage(window, path, { heading });
        }
    });
    await part(checkElsewhere.name, checkElsewhere);
    await part(checkSigning.name, checkSigning);
}
