// Opens each page of a console in a headless Chromium, in light and dark, wide and narrow, as a person with a keyboard
// and one with a screen reader would. Fails where
// - axe finds something serious,
// - a script of the data ran, or the browser reports an error or a violation of the content security policy,
// - a request goes to another server,
// - the document is wider than the window,
// - a control cannot be reached with Tab, or does not show that it has the focus,
// - a page does not update itself, or does not work without its script.
//
// Usage: NODE pages.mjs --url URL --frameworks FOLDER --axe FOLDER [--cookie NAME=VALUE] [--shots FOLDER]
//                       [--pages /,/tools,…] [--pages-only] [--served --token TOKEN --other-token TOKEN] [--pictures FOLDER]
// With --pictures it checks nothing, and draws the pictures of the documentation. Without --pages-only, what the samples of the example `pages` hold is checked too. With --served, the console is that
// of a server with the tools of `check.py`, and an operator decides there. The first token is that of the operator `ann`,
// the other one that of a caller who is no operator.
// The paths of Node and both folders are those that `setup.sh console` prints.

import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

import { startBrowser } from '../frameworks/node/browser.mjs';

const { values: options } = parseArgs({
    options: {
        url: { type: 'string' },
        frameworks: { type: 'string' },
        axe: { type: 'string' },
        cookie: { type: 'string' },
        shots: { type: 'string' },
        pages: { type: 'string', default: '/,/tools,/tools/weather_normals,/denials,/changes,/approvals,/audit,/audit/calls/c4711,/callers,/sign-in?reason=token,/nothing' },
        'pages-only': { type: 'boolean', default: false },
        served: { type: 'boolean', default: false },
        token: { type: 'string' },
        'other-token': { type: 'string' },
        pictures: { type: 'string' },
    },
});

// A busy machine draws slowly.
const PATIENCE_MS = 60_000;
const WINDOWS = [
    { colorScheme: 'light', viewport: { width: 1280, height: 800 } },
    { colorScheme: 'dark', viewport: { width: 1280, height: 800 } },
    { colorScheme: 'light', viewport: { width: 360, height: 740 } },
    { colorScheme: 'dark', viewport: { width: 360, height: 740 } },
];
// Pages that are higher than this are shown as the window has them.
const HIGHEST_SHOT = 6_000;
// The views that the documentation shows.
const PICTURES = {
    'console.png': '/',
    'console-tool.png': '/tools/weather_normals',
    'console-denials.png': '/denials',
    'console-changes.png': '/changes',
    'console-approvals.png': '/approvals',
    'console-call.png': '/audit/calls/c4711',
};
// Presses of Tab on one page, so that a trap for the focus ends the test.
const MOST_TABS = 1_500;
const CONTROLS = 'a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex="0"]';

const axe = readFileSync(join(options.axe, 'node_modules/axe-core/axe.min.js'), 'utf8');
const origin = new URL(options.url).origin;
const browser = await startBrowser(options.frameworks);
const problems = [];
let checks = 0;

function check(good, what) {
    checks += 1;
    if (!good) {
        problems.push(what);
        console.error(`failed: ${what}`);
    }
}

/** A window in which what must not happen is noted: that of who came by the link, or of a stranger. */
async function open(window, isStranger = false) {
    const context = await browser.newContext({ ...window, reducedMotion: 'reduce' });
    context.setDefaultTimeout(PATIENCE_MS);
    if (options.cookie && !isStranger) {
        const [name, ...value] = options.cookie.split('=');
        await context.addCookies([{ name, value: value.join('='), url: options.url }]);
    }
    const page = await context.newPage();
    const seen = [];
    // A page that is not there is asked for on purpose.
    page.on('console', message => message.type() === 'error' && !/status of 40\d/.test(message.text()) && seen.push(message.text()));
    page.on('pageerror', error => seen.push(`error: ${error.message}`));
    page.on('dialog', dialog => seen.push(`dialog: ${dialog.message()}`) && dialog.dismiss());
    page.on('request', request => !/^data:/.test(request.url()) && new URL(request.url()).origin !== origin && seen.push(`asked ${request.url()}`));
    return { context, page, seen };
}

/** What axe finds that is serious. Its source is given to the page by the browser, not by the page's own policy. */
async function serious(page) {
    await page.evaluate(`(() => { const define = undefined, module = undefined; ${axe} })()`);
    const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
    return violations
        .filter(({ impact }) => impact === 'serious' || impact === 'critical')
        .map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map(node => node.html.slice(0, 160)).join(' | ')}`);
}

/** Controls that Tab does not reach, and those that do not show the focus. */
async function unreached(page) {
    await page.evaluate(controls => {
        const shown = element => element.checkVisibility({ checkVisibilityCSS: true }) && !element.closest('details:not([open]) > :not(summary)');
        window.controls = new Set([...document.querySelectorAll(controls)].filter(shown));
        window.faint = [];
        document.activeElement.blur();
    }, CONTROLS);
    for (let presses = 0; presses < MOST_TABS; presses += 1) {
        await page.keyboard.press('Tab');
        const over = await page.evaluate(() => {
            const element = document.activeElement;
            const style = getComputedStyle(element);
            if (element !== document.body && style.outlineStyle === 'none') window.faint.push(element.outerHTML.slice(0, 120));
            window.controls.delete(element);
            return element === document.body || window.controls.size === 0;
        });
        if (over) break;
    }
    return page.evaluate(() => [...[...window.controls].map(element => `unreached ${element.outerHTML.slice(0, 160)}`), ...window.faint.map(html => `no focus is seen: ${html}`)]);
}

async function checkPage(window, path, isStranger = false) {
    const name = `${path} ${window.colorScheme} ${window.viewport.width}`;
    const { context, page, seen } = await open(window, isStranger);
    await page.goto(options.url + path, { waitUntil: 'load' });
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    check(width <= window.viewport.width, `${name}: the document is ${width} wide`);
    if (options.shots) {
        mkdirSync(options.shots, { recursive: true });
        const file = `${path.replace(/[^a-z]+/gi, '-').replace(/^-|-$/g, '') || 'now'}-${window.colorScheme}-${window.viewport.width}.png`;
        await page.screenshot({ path: join(options.shots, file), fullPage: (await page.evaluate(() => document.documentElement.scrollHeight)) < HIGHEST_SHOT });
    }
    await page.evaluate(() => document.querySelectorAll('main details').forEach(details => { details.open = true; }));
    const openWidth = await page.evaluate(() => document.documentElement.scrollWidth);
    check(openWidth <= window.viewport.width, `${name}: the document is ${openWidth} wide once all is open`);
    for (const finding of await serious(page)) check(false, `${name}: ${finding}`);
    if (window.colorScheme === 'light') {
        const missing = await unreached(page);
        check(missing.length === 0, `${name}: ${missing.slice(0, 5).join('; ')}`);
    }
    check((await page.evaluate(() => window.ran)) === undefined, `${name}: a script of the data ran`);
    check(seen.length === 0, `${name}: ${seen.slice(0, 5).join('; ')}`);
    await context.close();
}

/** The page of what runs now follows the server, keeps what a person does, and can be paused. */
async function checkUpdates() {
    const { context, page, seen } = await open(WINDOWS[0]);
    await page.goto(`${options.url}/`, { waitUntil: 'load' });
    await page.locator('#live', { hasText: 'live' }).waitFor();
    const time = () => page.locator('#now-totals time').first().textContent();
    const first = await time();
    await page.locator('#now-running button').first().focus();
    await page.waitForFunction(before => document.querySelector('#now-totals time').textContent !== before, first);
    check(await page.evaluate(() => document.activeElement.closest('#now-running') !== null), 'an update keeps the focus');
    await page.locator('#pause').click();
    await page.locator('#live', { hasText: 'paused' }).waitFor();
    check((await page.evaluate(() => window.ran)) === undefined, 'a script of the data ran in an update');
    check(seen.length === 0, `updates: ${seen.join('; ')}`);
    await page.goto(`${options.url}/tools`, { waitUntil: 'load' });
    await page.locator('#q').pressSequentially('tool_0999');
    await page.waitForFunction(() => document.querySelectorAll('#tools-list tbody tr').length === 1);
    check(await page.evaluate(() => document.activeElement.id === 'q'), 'a search keeps the focus');
    check(page.url().endsWith('?q=tool_0999'), 'a search has an address of its own');
    await context.close();
}

/** Without the script, forms and links work all the same. */
async function checkWithoutScript() {
    const { context, page } = await open({ ...WINDOWS[0], javaScriptEnabled: false });
    await page.goto(`${options.url}/tools`, { waitUntil: 'load' });
    await page.locator('#q').fill('weather');
    await page.locator('form.search button').click();
    await page.waitForURL(/q=weather/);
    check((await page.locator('#tools-list tbody tr').count()) === 1, 'a search works without the script');
    check((await page.locator('#pause:visible').count()) === 0, 'what needs the script does not show');
    await page.goto(`${options.url}/`, { waitUntil: 'load' });
    await page.locator('#now-running button').first().click();
    await page.waitForLoadState('load');
    check((await page.locator('main h1').textContent()) === 'Now', 'a form works without the script');
    await context.close();
}

/** The samples' tool is tried: its result has one picture that may be shown, and two that may not. */
async function checkTry() {
    const { context, page, seen } = await open(WINDOWS[2]);
    await page.goto(`${options.url}/tools/weather_normals`, { waitUntil: 'load' });
    await page.locator('#argument-0').fill('Lisbon <b>');
    await page.getByRole('button', { name: 'Call it' }).click();
    await page.locator('#result').waitFor();
    const pictures = await page.locator('#result img').evaluateAll(all => all.map(image => image.naturalWidth));
    check(pictures.length >= 1 && pictures.every(width => width === 1), `pictures of a result are drawn: ${pictures}`);
    check(!(await page.content()).includes('data:image/svg'), 'no SVG of a result is shown');
    check((await page.locator('#argument-0').inputValue()) === 'Lisbon <b>', 'a form keeps what was typed');
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    check(width <= 360, `a result: the document is ${width} wide`);
    for (const finding of await serious(page)) check(false, `a result: ${finding}`);
    check((await page.evaluate(() => window.ran)) === undefined && seen.length === 0, `a result: ${seen.join('; ')}`);
    await context.close();
}

/** An operator calls tools, allows what was denied, answers for a call that waits, and looks at what was recorded. */
async function checkDecisions() {
    const { context, page, seen } = await open(WINDOWS[0]);
    const says = async (words, what) => {
        await page.locator('main', { hasText: words }).first().waitFor();
        check(true, what);
    };
    await page.goto(`${options.url}/tools/fetch_page`, { waitUntil: 'load' });
    await page.locator('#argument-0').fill('http://127.0.0.1:9/');
    await page.getByRole('button', { name: 'Call it' }).click();
    await page.locator('#result').waitFor();
    await page.goto(`${options.url}/denials`, { waitUntil: 'load' });
    await says('GET http://127.0.0.1:9/', 'a denial shows');
    await page.getByRole('button', { name: 'Mute these denials', exact: true }).click();
    await page.locator('#muted summary').click();
    await page.getByRole('button', { name: 'Unmute these denials' }).click();
    await page.getByRole('button', { name: 'Add to the manifest' }).click();
    await says('The rule is written', 'what was denied is allowed');

    // The call waits in one window until a person allows it in another.
    const other = await context.newPage();
    await other.goto(`${options.url}/tools/read`, { waitUntil: 'load' });
    await other.locator('#argument-0').fill('5 ft 11 in');
    const answered = other.getByRole('button', { name: 'Call it' }).click().then(() => other.locator('#result').waitFor());
    await page.goto(`${options.url}/approvals`, { waitUntil: 'load' });
    await page.getByRole('button', { name: 'Allow once' }).click();
    await answered;
    check((await other.locator('#result').textContent()).includes('foot'), 'a call that was allowed is answered');

    await page.goto(`${options.url}/audit?tool=read`, { waitUntil: 'load' });
    await page.locator('main a[href^="/audit/calls/"]').first().click();
    await says('call.finished', 'a call is shown from start to end');
    await page.goto(`${options.url}/audit`, { waitUntil: 'load' });
    await page.getByRole('button', { name: 'Check the chain now' }).click();
    await says('The chain of records is whole', 'the chain is checked');
    check((await page.evaluate(() => window.ran)) === undefined && seen.length === 0, `decisions: ${seen.join('; ')}`);
    await context.close();
}

/** The page that signs in looks and works like the others. */
async function checkSignInPage() {
    for (const window of WINDOWS) {
        await checkPage(window, '/sign-in', true);
        const name = `a wrong token ${window.colorScheme} ${window.viewport.width}`;
        const { context, page, seen } = await open(window, true);
        await page.goto(`${options.url}/audit`, { waitUntil: 'load' });
        await page.getByLabel('Token').fill('toolcell_wrong');
        await page.getByRole('button', { name: 'Sign in' }).click();
        await page.getByRole('alert').filter({ hasText: 'This token does not open the console' }).waitFor();
        check((await page.getByLabel('Token').inputValue()) === '', `${name}: it is not written into the page`);
        check((await page.locator('#token').getAttribute('aria-describedby')) === 'reason', `${name}: the field is told of`);
        const width = await page.evaluate(() => document.documentElement.scrollWidth);
        check(width <= window.viewport.width, `${name}: the document is ${width} wide`);
        for (const finding of await serious(page)) check(false, `${name}: ${finding}`);
        check(seen.length === 0, `${name}: ${seen.slice(0, 5).join('; ')}`);
        await context.close();
    }
}

/** Signs in with a token, from the page of a view. */
async function signIn(page, token) {
    await page.goto(`${options.url}/audit`, { waitUntil: 'load' });
    await page.getByLabel('Token').fill(token);
    // A form is sent with Enter as well.
    await page.getByLabel('Token').press('Enter');
}

/** An operator's token signs in, with the script and without it, until it is revoked. Another caller's does not. */
async function checkSignIn() {
    const { context: other, page: stranger } = await open(WINDOWS[0], true);
    await signIn(stranger, options['other-token']);
    await stranger.getByRole('alert').filter({ hasText: 'This token does not open the console' }).waitFor();
    check((await other.cookies()).length === 0, 'who is no operator gets no session');
    await other.close();

    const windows = [WINDOWS[0], WINDOWS[2], { ...WINDOWS[1], javaScriptEnabled: false }];
    const entered = [];
    for (const window of windows) {
        const { context, page, seen } = await open(window, true);
        await signIn(page, options.token);
        await page.locator('main h1', { hasText: 'Now' }).waitFor();
        check((await page.locator('.who').textContent()).trim() === 'ann', 'the page says who has signed in');
        check((await context.cookies()).every(({ httpOnly, sameSite }) => httpOnly && sameSite === 'Strict'), 'the cookie is out of reach');
        const width = await page.evaluate(() => document.documentElement.scrollWidth);
        check(width <= window.viewport.width, `signed in: the document is ${width} wide`);
        check(seen.length === 0, `signing in: ${seen.slice(0, 5).join('; ')}`);
        entered.push({ context, page });
    }

    // Who came by the link revokes the token.
    const { context, page } = await open(WINDOWS[0]);
    await page.goto(`${options.url}/callers`, { waitUntil: 'load' });
    const row = page.locator('tr', { hasText: 'ann' });
    await row.locator('summary').click();
    await row.getByRole('button', { name: 'Revoke this token' }).click();
    await page.locator('main', { hasText: 'Revoked: the server turns it away' }).waitFor();
    await context.close();
    // The page that was open hears of it by itself.
    await entered[0].page.locator('#live', { hasText: 'ended' }).waitFor();
    for (const { context, page } of entered) {
        const answer = await page.goto(`${options.url}/tools`, { waitUntil: 'load' });
        check(answer.status() === 403, `/tools of a session that has ended is ${answer.status()}`);
        await page.getByRole('alert').filter({ hasText: 'The session has ended. Sign in again.' }).waitFor();
        check(await page.getByLabel('Token').isVisible(), 'a session that has ended leads to the sign-in');
        await context.close();
    }
}

/** Without its cookie a browser sees nothing, and after signing out neither does an operator. */
async function checkEntry() {
    const stranger = await browser.newContext();
    const page = await stranger.newPage();
    for (const path of ['/', '/audit', `/enter/${'0'.repeat(64)}`]) {
        const answer = await page.goto(options.url + path);
        check(answer.status() === 403, `${path} of a stranger is ${answer.status()}`);
        check((await page.locator('main').textContent()).includes('toolcell console'), `${path} says how to get in: ${await page.locator('main').textContent()}`);
    }
    await stranger.close();
    const { context, page: operator } = await open(WINDOWS[0]);
    await operator.goto(`${options.url}/`, { waitUntil: 'load' });
    await operator.getByRole('button', { name: 'Sign out' }).click();
    await operator.waitForLoadState('load');
    const left = await operator.goto(`${options.url}/`);
    check(left.status() === 403, `after signing out / is ${left.status()}`);
    await context.close();
}

/** Draws a view into a file, as it looks in the first window. */
async function draw(file, path) {
    const { context, page } = await open(WINDOWS[0]);
    await page.goto(options.url + path, { waitUntil: 'load' });
    if (path === '/') await page.locator('#live', { hasText: 'live' }).waitFor();
    await page.screenshot({ path: join(options.pictures, file) });
    await context.close();
}

if (options.pictures) {
    for (const [file, path] of Object.entries(PICTURES)) await draw(file, path);
    await browser.close();
    process.exit(0);
}
if (options.served) {
    await checkDecisions();
    options.pages = '/,/tools,/tools/fetch_page,/tools/convert,/denials,/changes,/approvals,/audit,/callers';
    options['pages-only'] = true;
}
for (const window of WINDOWS) {
    for (const path of options.pages.split(',')) await checkPage(window, path);
}
if (!options['pages-only']) {
    await checkUpdates();
    await checkWithoutScript();
    await checkTry();
}
if (options.served) {
    await checkSignInPage();
    await checkSignIn();
    await checkEntry();
}
await browser.close();
console.log(`${checks - problems.length} passed, ${problems.length} failed`);
process.exit(problems.length === 0 ? 0 : 1);
