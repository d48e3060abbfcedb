// Who gets in at a real server, and when a session is over: the page that signs in, tokens, tokens that end, links, signing out.
// Must not hold: decisions about calls.

import { generateKeyPairSync, sign } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { LIGHT, NARROW, TWO_WINDOWS, WINDOWS, check, checkPage, checkShown, equal, isQuiet, isTold, load, open, options, sees, textOf } from './look.mjs';

const HEADING = 'Sign in to acme-tools';
const RESOURCE = 'https://tools.example.com/mcp';
// Seconds that a token lasts. A busy machine may need longer than one lasts to sign in with it.
const LIVES_S = [4, 20, 60];
// Words of pages that who is not signed in must not see: names of tools, callers and records.
const DATA = /fetch_page|notes_write|call\.finished|console\.decided|\beve\b/;

/** The page asks to sign in, says why, and shows nothing else. */
async function asksToSignIn(page, reason) {
    const alert = page.getByRole('alert');
    if (reason) equal(await textOf(alert), reason, 'the reason to sign in');
    equal(await textOf(page.locator('h1')), HEADING, 'the heading of the page that signs in');
    check(await page.getByLabel('Token').isVisible(), 'there is a field for a token');
    const shown = (await page.content()).match(DATA);
    check(shown === null, `a page without a session shows ${shown}`);
}

/** Signs in with a token, from the page of a view. A form is sent with Enter as well. */
async function signIn(page, token, path = '/audit') {
    await load(page, path, 403);
    await page.getByLabel('Token').fill(token);
    await page.getByLabel('Token').press('Enter');
}

const isIn = page => page.locator('main h1', { hasText: /^Now$/ }).waitFor();

/** The page that signs in looks and works like the others. */
async function checkSignInPage() {
    for (const window of WINDOWS) await checkPage(window, '/sign-in', { heading: HEADING, isStranger: true });
    for (const window of TWO_WINDOWS) {
        const name = `a wrong token ${window.colorScheme} ${window.viewport.width}`;
        const opened = await open(window, true);
        const { context, page } = opened;
        await load(page, '/audit', 403);
        await page.getByLabel('Token').fill('toolcell_wrong');
        await page.getByRole('button', { name: 'Sign in' }).click();
        await sees(page.getByRole('alert').filter({ hasText: 'This token does not open the console' }), name);
        equal(await page.getByLabel('Token').inputValue(), '', `${name}: the field`);
        equal(await page.locator('#token').getAttribute('aria-describedby'), 'reason', `${name}: the description of the field`);
        await checkShown(opened, window, name, false);
        await context.close();
    }
}

/** An operator's token signs in, with the script and without it, until it is revoked. Another caller's does not. */
async function checkTokens() {
    const { context: other, page: stranger } = await open(LIGHT, true);
    await signIn(stranger, options['other-token']);
    await sees(stranger.getByRole('alert').filter({ hasText: 'This token does not open the console' }), "a caller's token");
    equal(await other.cookies(), [], 'cookies of who is not an operator');
    await other.close();

    const entered = [];
    for (const window of [LIGHT, NARROW, { ...LIGHT, javaScriptEnabled: false }]) {
        const opened = await open(window, true);
        const { context, page } = opened;
        await signIn(page, options.token);
        await isIn(page);
        equal(await textOf(page.locator('.who')), 'ann', 'who has signed in');
        check((await context.cookies()).every(({ httpOnly, sameSite }) => httpOnly && sameSite === 'Strict'), 'the cookie is out of reach');
        await isQuiet(opened, 'signing in');
        entered.push(opened);
    }

    // Who came by the link revokes the token.
    const { context, page } = await open(LIGHT);
    await load(page, '/callers');
    const row = page.locator('tr', { has: page.getByRole('button', { name: 'Revoke this token', includeHidden: true }) }).filter({ hasText: 'ann' });
    await row.locator('summary').click();
    await row.getByRole('button', { name: 'Revoke this token' }).click();
    await isTold(page, 'Revoked: the server turns it away within some seconds.');
    await context.close();
    // The page that was open hears of it by itself.
    await sees(entered[0].page.locator('#live', { hasText: 'ended' }), 'an open page hears that its session has ended');
    for (const { context, page } of entered) {
        await load(page, '/tools', 403);
        await asksToSignIn(page, 'The session has ended. Sign in again.');
        await context.close();
    }
}

/** A new key of the issuer whose metadata `check.py` serves. Gives what signs tokens with it. */
export function issuerKey() {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const header = { typ: 'JWT', alg: 'ES256', kid: 'console-check' };
    const keys = { keys: [{ ...publicKey.export({ format: 'jwk' }), kid: header.kid, alg: header.alg, use: 'sig' }] };
    writeFileSync(join(options.folder, 'keys.json'), JSON.stringify(keys));
    const encoded = part => Buffer.from(JSON.stringify(part)).toString('base64url');
    return (sub, seconds) => {
        const now = Math.floor(Date.now() / 1_000);
        const text = `${encoded(header)}.${encoded({ iss: options.issuer, sub, aud: RESOURCE, iat: now, exp: now + seconds })}`;
        return `${text}.${sign('sha256', Buffer.from(text), { key: privateKey, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`;
    };
}

/** A session whose token ends: the open page says so, and nothing of its data is left when it is loaded anew. */
async function checkExpiry() {
    const token = issuerKey();
    const opened = await open(LIGHT, true);
    const { context, page } = opened;
    for (const seconds of LIVES_S) {
        await signIn(page, token('ann', seconds));
        await page.waitForLoadState('load');
        if (await page.locator('.who', { hasText: 'corp:ann' }).count()) {
            const answer = await page.goto(`${options.url}/audit`);
            if (answer.status() === 200 && DATA.test(await page.content())) break;
        }
    }
    await sees(page.locator('#live', { hasText: 'ended' }), 'the open page says that its session has ended');
    await sees(page.locator('#said', { hasText: 'The session has ended.' }), 'so does it to who hears the page');
    const again = await page.reload();
    equal(again.status(), 403, 'the status of the page that is loaded anew');
    await asksToSignIn(page, 'The session has ended. Sign in again.');
    // Neither does the browser's history keep it.
    await page.goto('about:blank');
    await page.goBack();
    await asksToSignIn(page, 'The session has ended. Sign in again.');
    for (const path of ['/', '/callers', '/audit/export.jsonl', '/tools/fetch_page']) {
        await load(page, path, 403);
        await asksToSignIn(page, 'The session has ended. Sign in again.');
    }
    await isQuiet(opened, 'a session that has ended');
    await context.close();
}

/** Without its cookie a browser sees nothing, and after signing out neither does an operator. */
async function checkEntry() {
    const { context: other, page } = await open(LIGHT, true);
    for (const path of ['/', '/audit', `/enter/${'0'.repeat(64)}`]) {
        await load(page, path, 403);
        await asksToSignIn(page);
        check((await textOf(page.locator('main'))).includes('toolcell console'), `${path} says how to get in`);
    }
    await other.close();
    const { context, page: operator } = await open(LIGHT);
    await load(operator, '/audit');
    await operator.getByRole('button', { name: 'Sign out' }).click();
    await sees(operator.getByRole('alert').filter({ hasText: 'You are signed out.' }), 'an operator signs out');
    await asksToSignIn(operator, 'You are signed out.');
    await operator.goBack();
    await asksToSignIn(operator);
    await load(operator, '/', 403);
    await asksToSignIn(operator);
    await context.close();
}

export async function checkSigning() {
    await checkSignInPage();
    await checkTokens();
    await checkExpiry();
    await checkEntry();
}
