// What holds of the pages of the example `pages`, plain and hostile: each view in each window, updates, forms without the
// script, and a result with pictures. Must not hold: checks of a real server.

import { checkClicks } from './clicks.mjs';
import { LIGHT, NARROW, TWO_WINDOWS, VIEWS, WINDOWS, check, checkPage, checkShown, equal, isQuiet, load, open, options, sees, textOf } from './look.mjs';

// Pages besides the views: their headings and statuses. Texts of the hostile samples begin with those of the plain ones.
const FURTHER = {
    '/tools/weather_normals': { heading: /^weather_normals\b.* Monthly averages\b/ },
    '/audit/calls/c4711': { heading: /^Call 4711 trap\b/ },
    '/sign-in?reason=token': { heading: /^Sign in to acme tools\b/ },
    '/nothing': { heading: 'There is no such page', status: 404 },
};

/** The page of what runs now follows the server, keeps what a person does, and can be paused. */
async function checkUpdates() {
    const opened = await open(LIGHT);
    const { context, page } = opened;
    await load(page, '/');
    await sees(page.locator('#live', { hasText: 'live' }), 'the page follows the server');
    const time = () => page.locator('#now-totals time').first().textContent();
    const first = await time();
    await page.locator('#now-running button').first().focus();
    await page.waitForFunction(before => document.querySelector('#now-totals time').textContent !== before, first);
    check(await page.evaluate(() => document.activeElement.closest('#now-running') !== null), 'an update keeps the focus');
    await page.locator('#pause').click();
    await sees(page.locator('#live', { hasText: 'paused' }), 'the page can be paused');
    await isQuiet(opened, 'updates');
    await load(page, '/tools');
    await page.locator('#q').pressSequentially('tool_0999');
    await page.waitForFunction(() => document.querySelectorAll('#tools-list tbody tr').length === 1);
    check(await page.evaluate(() => document.activeElement.id === 'q'), 'a search keeps the focus');
    check(page.url().endsWith('?q=tool_0999'), 'a search has an address of its own');
    await context.close();
}

/** Charts are drawn by the library that is embedded, say what is under the pointer, and move on without being drawn anew. */
async function checkCharts(window) {
    const opened = await open(window);
    const { context, page } = opened;
    await load(page, '/');
    const painted = () => page.$$eval('#now-history canvas', all => all.map(canvas => {
        const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
        return data.some((byte, at) => at % 4 === 3 && byte > 0);
    }));
    equal(await painted(), [true, true], 'charts that are painted');
    const place = page.locator('#now-times');
    await place.scrollIntoViewIfNeeded();
    const box = await place.boundingBox();
    await page.mouse.move(box.x + box.width * 0.75, box.y + box.height / 2);
    await page.waitForFunction(() => document.getElementById('now-times-at').textContent !== '');
    const said = await textOf(page.locator('#now-times-at'));
    check(/^\d\d:\d\d:\d\d: [\d.]+ ms median, [\d.]+ ms 99th$/.test(said), `what is under the pointer: ${said}`);
    await page.evaluate(() => { document.querySelector('#now-times canvas').kept = true; });
    const lines = await place.getAttribute('data-lines');
    await page.waitForFunction(before => document.getElementById('now-times').dataset.lines !== before, lines);
    equal(await page.evaluate(() => document.querySelector('#now-times canvas').kept), true, 'the chart that was drawn before is the one that moves on');
    equal(await painted(), [true, true], 'charts that are painted after an update');
    await isQuiet(opened, 'charts');
    await context.close();
}

/** Without the script, forms and links work all the same. */
async function checkWithoutScript() {
    const { context, page } = await open({ ...LIGHT, javaScriptEnabled: false });
    await load(page, '/tools');
    await page.locator('#q').fill('weather');
    await page.locator('form.search button').click();
    await page.waitForURL(/q=weather/);
    equal(await page.locator('#tools-list tbody tr').count(), 1, 'tools that a search finds without the script');
    await load(page, '/callers');
    await page.getByLabel('Search names of rules, callers and logins').fill('ann');
    await page.locator('form.search button').click();
    await page.waitForURL(/callers\?q=ann/);
    equal(await page.locator('#q').inputValue(), 'ann', 'the name that was searched for without the script');
    equal(await page.locator('#pause:visible').count(), 0, 'buttons that need the script');
    await load(page, '/');
    equal(await page.locator('#now-chart rect').count() >= 60, true, 'bars without the script');
    await page.locator('#now-running button').first().click();
    await page.waitForLoadState('load');
    equal(await textOf(page.locator('main h1')), 'Now', 'the page after a form without the script');
    await context.close();
}

/** The samples' tool is tried: its result has one picture that may be shown, and two that may not. */
async function checkTry() {
    const opened = await open(NARROW);
    const { context, page } = opened;
    await load(page, '/tools/weather_normals');
    await page.locator('#argument-0').fill('Lisbon <b>');
    await page.getByRole('button', { name: 'Call it' }).click();
    await page.locator('#result').waitFor();
    const pictures = await page.locator('#result img').evaluateAll(all => all.map(image => image.naturalWidth));
    check(pictures.length >= 1 && pictures.every(width => width === 1), `pictures of a result are drawn: ${pictures}`);
    check(!(await page.content()).includes('data:image/svg'), 'no SVG of a result is shown');
    equal(await page.locator('#argument-0').inputValue(), 'Lisbon <b>', 'what was typed into the form');
    await checkShown(opened, NARROW, 'a result', false);
    await context.close();
}

export async function checkSamples() {
    const windows = options.mode === 'plain' ? WINDOWS : TWO_WINDOWS;
    const pages = options.pages?.split(',') ?? [...Object.keys(VIEWS), ...Object.keys(FURTHER)];
    for (const window of windows) {
        for (const path of pages) await checkPage(window, path, FURTHER[path]);
    }
    // The rest is for all pages of the samples.
    if (options.pages) return;
    await checkUpdates();
    for (const window of TWO_WINDOWS) await checkCharts(window);
    await checkWithoutScript();
    await checkTry();
    await checkClicks();
}
