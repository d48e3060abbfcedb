// A click that lands where another button stood a moment before decides nothing, unless the person has scrolled since. Must
// not hold: how a browser is started.

import { LIGHT, check, load, open } from './look.mjs';

// As long as the script of the pages has a click wait, in milliseconds.
const SETTLE_MS = 1_000;

/** Clicks on a card that an update has brought under the pointer, at once and once the page has settled. */
export async function checkClicks() {
    const { context, page } = await open(LIGHT);
    await load(page, '/denials');
    await page.locator('#pause').click();
    const button = page.locator('#denials-list article form[action="/denials/mute"] button').first();
    await button.scrollIntoViewIfNeeded();
    const { x, y, width, height } = await button.boundingBox();
    await page.mouse.move(x + width / 2, y + height / 2);
    await page.evaluate(() => {
        window.sent = [];
        document.addEventListener('submit', event => {
            event.preventDefault();
            window.sent.push(new FormData(event.target).get('key'));
        });
        // The update of an attacker: its card is put in front of the one that the person is about to decide on.
        const list = document.getElementById('denials-list').cloneNode(true);
        const card = list.querySelector('article');
        const other = card.cloneNode(true);
        for (const named of [other, ...other.querySelectorAll('[id]')]) named.id = `${named.id}-other`;
        for (const key of other.querySelectorAll('[name=key]')) key.value = 'other';
        card.before(other);
        update([list.outerHTML]);
    });
    await page.mouse.down();
    await page.mouse.up();
    check((await page.evaluate(() => window.sent.length)) === 0, 'a click on a card that has just come there does nothing');
    await page.locator('#said', { hasText: 'nothing was done' }).waitFor({ state: 'attached' });
    await page.waitForFunction(until => performance.now() > until, await page.evaluate(wait => performance.now() + wait, SETTLE_MS));
    await page.mouse.down();
    await page.mouse.up();
    check((await page.evaluate(() => window.sent.join())) === 'other', 'a click on a card that a person has seen decides');
    await page.evaluate(() => {
        window.sent = [];
        update([document.getElementById('denials-list').outerHTML]);
    });
    await page.mouse.down();
    await page.mouse.up();
    check((await page.evaluate(() => window.sent.join())) === 'other', 'a click after an update that moved nothing decides');
    await page.evaluate(() => {
        window.sent = [];
        const list = document.getElementById('denials-list').cloneNode(true);
        list.querySelector('article').remove();
        update([list.outerHTML]);
    });
    const last = page.locator('#denials-list article form[action="/denials/mute"] button').last();
    await page.evaluate(() => new Promise(requestAnimationFrame));
    const before = await page.evaluate(() => scrollY);
    await page.mouse.wheel(0, (await last.boundingBox()).y - y);
    await page.waitForFunction(before => scrollY !== before, before);
    const now = await last.boundingBox();
    await page.mouse.click(now.x + width / 2, now.y + height / 2);
    check((await page.evaluate(() => window.sent.length)) === 1, 'a click on what a person has scrolled to decides');
    await context.close();
}
