// What all checks of the console share: the browser and its windows, and what must hold of every page. Holds no view.
//
// A page fails where
// - its status or its heading is another one,
// - axe finds something serious,
// - a script of the data ran, or the browser reports an error or a violation of the content security policy,
// - a request goes to another server,
// - the document is wider than the window,
// - a line ends in the middle of a name's word,
// - it has more bytes than a page may have,
// - a control cannot be reached with Tab, or does not show that it has the focus.

import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

import { startBrowser } from '../matrix/node/browser.mjs';

export const { values: options } = parseArgs({
    options: {
        mode: { type: 'string', default: 'plain' },
        url: { type: 'string' },
        frameworks: { type: 'string' },
        axe: { type: 'string' },
        cookie: { type: 'string' },
        shots: { type: 'string' },
        pages: { type: 'string' },
        // Of a real server: where clients call it, its folder, who its callers are, and who signs tokens.
        mcp: { type: 'string' },
        folder: { type: 'string' },
        token: { type: 'string' },
        'other-token': { type: 'string' },
        issuer: { type: 'string' },
        pictures: { type: 'string' },
    },
});

// A busy machine draws slowly.
export const PATIENCE_MS = 60_000;
export const LIGHT = { colorScheme: 'light', viewport: { width: 1280, height: 800 } };
export const DARK_NARROW = { colorScheme: 'dark', viewport: { width: 360, height: 740 } };
export const NARROW = { colorScheme: 'light', viewport: { width: 360, height: 740 } };
export const WINDOWS = [LIGHT, { colorScheme: 'dark', viewport: { width: 1280, height: 800 } }, NARROW, DARK_NARROW];
// For views that are looked at again: each width and each theme once, and all controls with Tab.
export const TWO_WINDOWS = [LIGHT, DARK_NARROW];

// Widths between those windows: telephones, tablets, halves of a screen, and both sides of where the layout changes.
const WIDTHS = [320, 600, 768, 834, 896, 897, 1024, 1120, 1121];

// The heading of each view, by its path.
export const VIEWS = {
    '/': 'Now',
    '/tools': 'Tools',
    '/denials': 'Denials',
    '/changes': 'Changes',
    '/approvals': 'Approvals',
    '/audit': 'Audit',
    '/callers': 'Callers',
};

// Pages that are higher than this are shown as the window has them.
const HIGHEST_SHOT = 6_000;
// Presses of Tab on one page, so that a trap for the focus ends the test.
const MOST_TABS = 1_500;
const CONTROLS = 'a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex="0"]';
// Bytes of a page without pictures: LARGEST_PAGE_BYTES in host/console/tests/pages.rs.
const LARGEST_PAGE_BYTES = 1_500_000;

const axe = readFileSync(join(options.axe, 'node_modules/axe-core/axe.min.js'), 'utf8');
const origin = new URL(options.url).origin;
export const browser = await startBrowser(options.frameworks);
const problems = [];
let checks = 0;

export function check(good, what) {
    checks += 1;
    if (!good) {
        problems.push(what);
        console.error(`failed: ${what}`);
    }
}

/** Checks that these are the same, as JSON. */
export function equal(found, expected, what) {
    const [one, other] = [found, expected].map(value => JSON.stringify(value));
    check(one === other, `${what}: ${one} is not ${other}`);
}

/** Ends the program, with what came of all checks. */
export async function finish() {
    await browser.close();
    console.log(`${checks - problems.length} passed, ${problems.length} failed`);
    process.exit(problems.length === 0 ? 0 : 1);
}

/** Does a part of the checks, and says how long that took. */
export async function part(name, does) {
    const began = Date.now();
    await does();
    console.log(`  ${name} took ${Math.round((Date.now() - began) / 1_000)} s`);
}

/** Waits until this is seen. */
export async function sees(locator, what) {
    const seen = await locator.first().waitFor({ timeout: PATIENCE_MS }).then(() => true, () => false);
    check(seen, `${what}: it is not seen`);
}

/** Waits until the view says these words. */
export const says = (page, words, what = words) => sees(page.locator('main', { hasText: words }), what);

/** True if a text is this one, or fits this pattern. */
const fits = (text, expected) => (expected instanceof RegExp ? expected.test(text) : text === expected);

/** Waits until the notice of what was just done has exactly these words, or fits this pattern. */
export async function isTold(page, expected) {
    const notice = page.locator('main > .notice');
    const exact = expected instanceof RegExp ? expected : new RegExp(`^${expected.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}$`);
    // The notice of an earlier form may still be there.
    const told = await notice.filter({ hasText: exact }).first().waitFor({ timeout: PATIENCE_MS }).then(() => true, () => false);
    check(told, `the notice is not ${expected} but ${told || await notice.allTextContents()}`);
}

/** Waits until something holds. `look` gives it, or nothing. */
export async function until(look, what) {
    const end = Date.now() + PATIENCE_MS;
    for (;;) {
        const found = await look();
        if (found) return found;
        if (Date.now() > end) throw new Error(`it never came: ${what}`);
        await new Promise(resolve => setTimeout(resolve, 50));
    }
}

/** The text of an element as a person reads it. */
export const textOf = async locator => (await locator.first().textContent()).replace(/\s+/g, ' ').trim();

/** A window in which what must not happen is noted: that of who came by the link, or of a stranger. */
export async function open(window, isStranger = false, cookie = options.cookie) {
    const context = await browser.newContext({ ...window, reducedMotion: 'reduce' });
    context.setDefaultTimeout(PATIENCE_MS);
    if (cookie && !isStranger) {
        const [name, ...value] = cookie.split('=');
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

/** Loads a page, which must have this status. */
export async function load(page, path, status = 200) {
    const answer = await page.goto(options.url + path, { waitUntil: 'load' });
    equal(answer.status(), status, `the status of ${path}`);
    return answer;
}

/** Checks that nothing of what must not happen has happened in a window. */
export async function isQuiet({ page, seen }, name) {
    check((await page.evaluate(() => window.ran)) === undefined, `${name}: a script of the data ran`);
    check(seen.length === 0, `${name}: ${seen.slice(0, 5).join('; ')}`);
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

/** Texts whose lines end within a word. Those with a longer word than pages keep together are left out. */
const brokenWords = page => page.evaluate(() => {
    const broken = [];
    for (const text of document.querySelectorAll('main bdi:not(.long)')) {
        if (text.closest('pre, .prose') || text.getClientRects().length < 2) continue;
        const walker = document.createTreeWalker(text, NodeFilter.SHOW_TEXT);
        let [last, lastTop, range] = ['', 0, document.createRange()];
        let wasNamed = false;
        for (let node = walker.nextNode(); node; node = walker.nextNode()) {
            // The name of a character that is not shown is a word of its own.
            const isNamed = node.parentElement.matches('b.u');
            if (isNamed !== wasNamed) last = '';
            wasNamed = isNamed;
            for (let at = 0; at < node.data.length; at += 1) {
                range.setStart(node, at);
                range.setEnd(node, at + 1);
                const { top, height } = range.getBoundingClientRect();
                const isWithin = /[\p{L}\p{N}]/u.test(last) && /[\p{L}\p{N}]/u.test(node.data[at]);
                if (last && top > lastTop + height / 2 && isWithin) broken.push(`${text.textContent.slice(0, 60)} before ${node.data.slice(at, at + 12)}`);
                [last, lastTop] = [node.data[at], top];
            }
        }
    }
    return broken;
});

/** Checks the width of the document, as it is and once all is open, and where its names break. */
async function checkWidth(page, { viewport, colorScheme }, name) {
    const width = () => page.evaluate(() => document.documentElement.scrollWidth);
    const closed = await width();
    check(closed <= viewport.width, `${name}: the document is ${closed} wide`);
    await page.evaluate(() => document.querySelectorAll('main details').forEach(details => { details.open = true; }));
    const opened = await width();
    check(opened <= viewport.width, `${name}: the document is ${opened} wide once all is open`);
    const isWhole = async width => {
        const broken = await brokenWords(page);
        check(broken.length === 0, `${name}: names break within a word in a window of ${width}: ${broken.slice(0, 5).join('; ')}`);
    };
    await isWhole(viewport.width);
    if (viewport.width !== LIGHT.viewport.width || colorScheme !== LIGHT.colorScheme) return;
    for (const between of WIDTHS) {
        await page.setViewportSize({ ...viewport, width: between });
        const found = await width();
        check(found <= between, `${name}: the document is ${found} wide in a window of ${between}`);
        await isWhole(between);
    }
    await page.setViewportSize(viewport);
}

/** Checks a page that is loaded, and gives its bytes without pictures. All of its parts are open afterwards. */
export async function checkShown({ page, seen }, window, name, withTab = window.colorScheme === 'light') {
    const bytes = await page.evaluate(() => {
        const pictures = [...document.querySelectorAll('img[src^="data:"]')].map(image => image.src.length);
        return new TextEncoder().encode(document.documentElement.outerHTML).length - pictures.reduce((sum, one) => sum + one, 0);
    });
    check(bytes <= LARGEST_PAGE_BYTES, `${name}: the page has ${bytes} bytes`);
    await checkWidth(page, window, name);
    const findings = await serious(page);
    check(findings.length === 0, `${name}: ${findings.join('; ')}`);
    if (withTab) {
        const missing = await unreached(page);
        check(missing.length === 0, `${name}: ${missing.slice(0, 5).join('; ')}`);
    }
    await isQuiet({ page, seen }, name);
    return bytes;
}

async function shoot(page, window, path) {
    mkdirSync(options.shots, { recursive: true });
    const file = `${path.replace(/[^a-z]+/gi, '-').replace(/^-|-$/g, '') || 'now'}-${window.colorScheme}-${window.viewport.width}.png`;
    await page.screenshot({ path: join(options.shots, file), fullPage: (await page.evaluate(() => document.documentElement.scrollHeight)) < HIGHEST_SHOT });
}

/** Loads a page and checks it: its status, its one heading of the first rank, and words of its view. Gives its bytes. */
export async function checkPage(window, path, { heading = VIEWS[path], status = 200, shows, isStranger = false } = {}) {
    const name = `${path} ${window.colorScheme} ${window.viewport.width}`;
    const opened = await open(window, isStranger);
    const { page } = opened;
    await load(page, path, status);
    const headings = (await page.locator('h1').allTextContents()).map(text => text.replace(/\s+/g, ' ').trim());
    check(headings.length === 1 && fits(headings[0], heading), `${name}: its heading is ${headings} and not ${heading}`);
    if (shows) check((await textOf(page.locator('main'))).includes(shows), `${name}: it shows ${shows}`);
    if (options.shots) await shoot(page, window, path);
    const bytes = await checkShown(opened, window, name);
    await opened.context.close();
    return bytes;
}

/** The element that has the focus, after Tab was pressed until it is the one wanted. */
export async function tabTo(page, locator, what) {
    const wanted = await locator.first().elementHandle();
    for (let presses = 0; presses < MOST_TABS; presses += 1) {
        if (await wanted.evaluate(element => element === document.activeElement)) return;
        await page.keyboard.press('Tab');
    }
    check(false, `Tab does not reach ${what}`);
}
