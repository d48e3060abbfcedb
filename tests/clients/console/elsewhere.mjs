// Pages of other origins that try to read the console of a person who has signed in, and to decide there: one at another
// port of the console's own host, to which a browser sends the session's cookie, and one of another name of the machine.
// Nothing may happen, and nothing may be read. Must not hold: what an operator does.

import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';

import { call, said } from './client.mjs';
import { LIGHT, PATIENCE_MS, check, equal, load, open, options, sees, textOf, until } from './look.mjs';

// All paths that decide, with the fields that their forms have: those of host/console/src/routes.rs.
const DECIDING = {
    '/calls/stop': { call: 'CALL' },
    '/denials/apply': { key: '1' },
    '/denials/mute': { key: '1' },
    '/denials/unmute': { key: '1' },
    '/changes/read': { component: 'text', digest: `sha256:${'0'.repeat(64)}` },
    '/changes/approve': { component: 'text', digest: `sha256:${'0'.repeat(64)}` },
    '/approvals/answer': { key: '1', answer: 'allow' },
    '/callers/tokens/new': { name: 'mallory', scopes: '', expires: '' },
    '/callers/tokens/revoke': { id: '0'.repeat(16) },
    '/audit/verify': {},
    '/tools/counter_add/try': { 'argument-0': 'mallory' },
    '/sign-in': { token: 'toolcell_wrong' },
    '/sign-out': {},
};
const READ = ['/', '/tools', '/tools/slow', '/denials', '/changes', '/approvals', '/audit', '/callers', '/audit/export.jsonl', '/audit/export.csv', '/events?view=now', '/sign-in'];
// What a browser loads into a page: the element and the attribute with the address.
const ELEMENTS = { img: 'src', script: 'src', link: 'href', video: 'src' };

/** A web server of somebody else: `/form` sends the form in its query by itself. */
async function elsewhere() {
    const server = createServer((request, answer) => {
        const asked = new URL(request.url, 'http://x');
        const fields = [...asked.searchParams].filter(([name]) => name !== 'to');
        const inputs = fields.map(([name, value]) => `<input type="hidden" name="${name}" value="${value}">`).join('');
        const form = asked.pathname === '/form' ? `<form method="post" action="${asked.searchParams.get('to')}">${inputs}</form><script>document.forms[0].submit()</script>` : '';
        answer.setHeader('content-type', 'text/html').end(`<!DOCTYPE html><title>elsewhere</title>${form}`);
    });
    await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address();
    return { server, origins: [`http://127.0.0.1:${port}`, `http://localhost:${port}`] };
}

const records = () => readFileSync(join(options.folder, 'audit.jsonl'), 'utf8').trimEnd().split('\n').map(line => JSON.parse(line));
const decided = () => records().filter(({ event }) => event === 'console.decided').length;
const kept = () => ['toolcell.toml', 'tokens.jsonl'].map(file => readFileSync(join(options.folder, file), 'utf8'));

/** Forms of another page that send themselves, with the token of the session's forms: as if it had leaked. */
async function checkForms(page, origin, csrf, number) {
    for (const [path, fields] of Object.entries(DECIDING)) {
        const all = { to: options.url + path, csrf, ...fields, ...(fields.call ? { call: number } : {}) };
        const answered = page.waitForResponse(answer => answer.url() === options.url + path);
        await page.goto(`${origin}/form?${new URLSearchParams(all)}`).catch(() => null);
        const answer = await answered;
        equal([answer.request().method(), answer.status()], ['POST', 403], `a form of ${origin} to ${path}`);
        await page.waitForLoadState('load');
        equal(await textOf(page.locator('h1')), 'That is not allowed', `the page after a form of ${origin} to ${path}`);
    }
}

/** Requests of a script of another page: nothing is read, and nothing is done. */
async function checkScripts(page, origin, csrf, number) {
    await page.goto(origin);
    const came = await page.evaluate(async ({ url, paths, deciding, csrf, number }) => {
        const read = async (path, init) => fetch(url + path, { credentials: 'include', ...init }).then(
            async answer => `${answer.type} ${answer.status} ${(await answer.text()).length}`,
            () => 'refused',
        );
        const all = [];
        for (const path of paths) {
            all.push([path, 'cors', await read(path, {})], [path, 'no-cors', await read(path, { mode: 'no-cors' })]);
        }
        for (const [path, fields] of Object.entries(deciding)) {
            const body = new URLSearchParams({ csrf, ...fields, ...(fields.call ? { call: number } : {}) });
            all.push([path, 'POST', await read(path, { method: 'POST', body })]);
            all.push([path, 'POST no-cors', await read(path, { method: 'POST', body, mode: 'no-cors' })]);
            navigator.sendBeacon(url + path, body);
        }
        return all;
    }, { url: options.url, paths: READ, deciding: DECIDING, csrf, number });
    for (const [path, how, what] of came) equal(what, 'refused', `${how} of ${origin} to ${path}`);
}

/** What other pages load as pictures, scripts or styles is refused. */
async function checkElements(page, origin, asset) {
    await page.goto(origin);
    const came = await page.evaluate(async ({ url, paths, elements }) => {
        const loaded = (address, name, attribute) => new Promise(resolve => {
            const element = document.createElement(name);
            if (name === 'link') element.rel = 'stylesheet';
            element.onerror = () => resolve('refused');
            element.onload = element.onloadedmetadata = () => resolve('loaded');
            element[attribute] = address;
            document.body.append(element);
        });
        const all = [];
        for (const path of paths) {
            for (const [name, attribute] of Object.entries(elements)) all.push([path, name, await loaded(url + path, name, attribute)]);
        }
        return all;
    }, { url: options.url, paths: [...READ, ...Object.keys(DECIDING), asset], elements: ELEMENTS });
    for (const [path, name, what] of came) equal(what, 'refused', `${name} of ${origin} with ${path}`);
}

/** No page of the console is shown in a frame, and events are not heard. */
async function checkFrames(page, origin) {
    await page.goto(origin);
    for (const path of READ) {
        const isIt = asked => asked.url() === options.url + path;
        const answered = Promise.race([page.waitForEvent('response', isIt), page.waitForEvent('requestfailed', isIt)]);
        await page.evaluate(address => document.body.append(Object.assign(document.createElement('iframe'), { src: address })), options.url + path);
        await answered;
    }
    const frames = page.frames().filter(frame => frame !== page.mainFrame());
    equal(frames.length, READ.length, `frames of ${origin}`);
    for (const frame of frames) {
        const text = await frame.evaluate(() => document.body?.innerText ?? '').catch(() => '');
        check(!text.includes('Sign out') && !text.includes('acme-tools'), `a frame of ${origin} shows the console: ${text.slice(0, 200)}`);
    }
    const heard = await page.evaluate(url => new Promise(resolve => {
        const source = new EventSource(`${url}/events?view=now`, { withCredentials: true });
        for (const kind of ['open', 'update', 'ended', 'error']) source.addEventListener(kind, () => resolve(kind) ?? source.close());
    }), options.url);
    equal(heard, 'error', `events that ${origin} hears`);
}

/** A window of the console that another page opens shows the view to its operator, and is out of that page's reach. */
async function checkOpened(context, page, origin) {
    await page.goto(origin);
    const [opened] = await Promise.all([context.waitForEvent('page'), page.evaluate(url => { window.opened = window.open(url); }, `${options.url}/audit`)]);
    // A browser leaves the cookie out on the way from another site: the console's own page leads on from there.
    await opened.locator('h1', { hasText: /^Audit$/ }).waitFor();
    check(await opened.evaluate(() => window.opener === null), `a window that ${origin} opened knows its opener`);
    const seen = await page.evaluate(() => {
        try {
            return `${window.opened.document.body.innerText}`;
        } catch (error) {
            return error.name;
        }
    });
    check(seen === 'SecurityError' || !seen.includes('Audit'), `${origin} reads a window that it opened: ${seen}`);
    await opened.close();
}

/** The console by another name of the machine: no session there. */
async function checkName({ page }) {
    const named = new URL(options.url);
    named.hostname = 'localhost';
    const answer = await page.goto(`${named.origin}/audit`);
    equal(answer.status(), 403, 'the status of the console by another name');
    check(!(await page.content()).includes('call.'), 'the console by another name shows records');
}

export async function checkElsewhere() {
    const own = await open(LIGHT);
    await load(own.page, '/');
    const csrf = await own.page.locator('input[name=csrf]').first().inputValue();
    const asset = await own.page.locator('link[rel=icon]').getAttribute('href');
    const answer = call(options['other-token'], 'slow', { steps: 1_000_000, step_ms: 100 });
    const row = own.page.locator('#now-running tr', { hasText: 'slow' });
    await sees(row.getByRole('button'), 'a call that runs');
    const number = (await textOf(row.getByRole('button'))).match(/\d+/)[0];
    const before = [decided(), kept()];

    const { server, origins } = await elsewhere();
    for (const origin of origins) {
        // Of the same context: the browser has the session's cookie.
        const page = await own.context.newPage();
        page.setDefaultTimeout(PATIENCE_MS);
        await checkForms(page, origin, csrf, number);
        await checkScripts(page, origin, csrf, number);
        await checkElements(page, origin, asset);
        await checkFrames(page, origin);
        await checkOpened(own.context, page, origin);
        await page.close();
    }
    await checkName(await open(LIGHT));
    server.close();
    server.closeAllConnections();

    // The session is not left, nothing was decided, and the call runs on until its operator ends it.
    await load(own.page, '/');
    equal([decided(), kept()], before, 'decisions, the manifest and the tokens');
    await row.getByRole('button').click();
    equal(said(await answer), 'the operator ended the call', 'the call that others tried to end');
    await until(() => decided() === before[0] + 1, 'the one decision');
    await own.context.close();
}
