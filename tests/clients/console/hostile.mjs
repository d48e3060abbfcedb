// A real server whose component says markup, terminal escapes and characters that turn text wherever it can, 10 MB of them
// where it is let: on no page does a script run, is another server asked, or is anything wider than the window, and each page
// is small. Must not hold: the texts, which are in tests/fixtures/guests/tools/markup.rs.

import { call } from './client.mjs';
import { swap } from './locked.mjs';
import { NARROW, TWO_WINDOWS, VIEWS, check, checkPage, checkShown, equal, isQuiet, isTold, load, open, options, part, sees, textOf, until } from './look.mjs';
import { issuerKey } from './signing.mjs';

// Bytes of each text that the component is asked to say.
const SAID_BYTES = 10_000_000;
// What a caller gives a call that waits, and its name: as an issuer has signed it.
const ARGUMENT = '</pre></textarea><script>window.ran=20</script><img src=//elsewhere.invalid/x onerror=window.ran=21>\u001b[2J\u202eevil ';
// A subject has no blanks and no control characters.
const CALLER = '"></bdi></td><svg/onload=window.ran=22><img/src=//elsewhere.invalid/onerror=window.ran=23>\u202eevil';
// The part of its texts that the component says in another way once it is swapped.
const [WORD, OTHER_WORD] = ['javascript:window.ran=6', 'javascript:window.ran=7'];
const TOOLS = ['markup_says', 'markup_fails', 'markup_asks'];

/** Calls that say, fail and ask: the numbers that the server gave them are 1 to 3. */
async function checkCalls(token) {
    for (const tool of TOOLS) {
        const { status, result } = await call(token, tool, { bytes: SAID_BYTES }, ARGUMENT);
        equal([status, result !== undefined], [200, true], `the answer to ${tool}`);
        // The client gets what the page clips: the texts are as long as they seem.
        const text = JSON.stringify(result);
        if (tool === 'markup_says') check(text.length > SAID_BYTES, `a result has all that was said: ${text.slice(0, 300)}`);
    }
}

/** The operator tries the tool: its result is shown. */
async function checkTried(opened) {
    const { page } = opened;
    await load(page, '/tools/markup_says');
    // Fields stand in the order of their names, and a name is markup.
    await page.locator('input[inputmode=decimal]').fill(String(SAID_BYTES));
    await page.getByRole('button', { name: 'Call it' }).click();
    await sees(page.locator('#result .chip', { hasText: 'ok' }), 'the call is answered');
    const clipped = await textOf(page.locator('#result .more'));
    check(/… 9,9\d\d,\d{3} more bytes/.test(clipped), `a result is clipped: ${clipped}`);
    equal(await page.locator('#result img').count(), 1, 'pictures that are shown: SVG is not');
    const bytes = await checkShown(opened, NARROW, 'a result', false);
    console.log(`  a result of 10 MB texts is a page of ${bytes} bytes`);
}

/** Calls whose arguments are markup wait, appear by themselves, and are decided. One that is not shown whole is only declined. */
async function checkWaiting(opened, token) {
    const { page } = opened;
    await load(page, '/approvals');
    const more = ARGUMENT.repeat(SAID_BYTES / ARGUMENT.length);
    const cut = call(token, 'markup_waits', { more, [ARGUMENT]: ARGUMENT }, ARGUMENT);
    const whole = call(token, 'markup_waits', { [ARGUMENT]: ARGUMENT }, ARGUMENT);
    const cards = page.locator('#approvals-waiting article');
    await until(async () => (await cards.count()) === 2, 'both calls wait');
    for (const window of TWO_WINDOWS) await checkPage(window, '/approvals', { shows: 'The arguments are not shown whole' });
    await checkShown(opened, NARROW, 'calls that wait', false);
    const [unseen, seen] = [cards.filter({ hasText: 'not shown whole' }), cards.filter({ hasNotText: 'not shown whole' })];
    const answers = await unseen.locator('button[name=answer]').evaluateAll(all => all.map(button => button.value));
    equal(answers, ['decline'], 'answers to a call that is not shown whole');
    await unseen.getByRole('button', { name: 'Decline call' }).click();
    await isTold(page, /^Call \d+ of "markup_waits" is declined\.$/);
    equal((await cut).result.isError, true, 'a call that was declined');
    await seen.getByRole('button', { name: 'Allow once' }).click();
    await isTold(page, /^Call \d+ of "markup_waits" is allowed\.$/);
    check((await whole).result.isError !== true, 'a call that was allowed runs');
}

/** The component is swapped for one that says other markup: its definitions differ. */
async function checkHeld({ page }) {
    await load(page, '/changes');
    const digest = swap('markup.wasm', WORD, OTHER_WORD);
    await sees(page.locator('article', { hasText: digest }), 'a swapped component is held');
}

async function checkViews() {
    const further = {
        '/tools/markup_says': /^markup_says /,
        '/tools/markup_waits': /^markup_waits /,
        ...Object.fromEntries(TOOLS.map((_, at) => [`/audit/calls/now.${at + 1}`, new RegExp(`^Call ${at + 1} `)])),
        '/audit?text=markup': 'Audit',
    };
    let largest = [0, ''];
    for (const window of TWO_WINDOWS) {
        for (const [path, heading] of Object.entries({ ...VIEWS, ...further })) {
            const bytes = await checkPage(window, path, { heading });
            if (bytes > largest[0]) largest = [bytes, path];
        }
    }
    console.log(`  the largest page is ${largest[1]} with ${largest[0]} bytes`);
}

export async function checkHostile() {
    const token = issuerKey()(CALLER, 3_600);
    await part(checkCalls.name, () => checkCalls(token));
    const opened = await open(NARROW);
    for (const looks of [checkTried, checkWaiting, checkHeld]) await part(looks.name, () => looks(opened, token));
    await isQuiet(opened, 'calls that say markup');
    await opened.context.close();
    await part(checkViews.name, checkViews);
}
