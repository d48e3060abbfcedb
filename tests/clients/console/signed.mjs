// What an operator decides on a real server about who signed: the same bytes, signed by another key than the lock pins, are
// served once a person has ticked the box that pins the signer. Must not hold: how they were signed, which is in signed.py.

import { copyFileSync, readFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';

import { LIGHT, WINDOWS, check, checkPage, equal, isQuiet, isTold, load, open, options, part, says, sees, textOf } from './look.mjs';

const lock = () => readFileSync(join(options.folder, 'toolcell.lock'), 'utf8');

/** Another signer waits with its words, and is pinned where the box is ticked and not before. */
async function checkSigners({ page }) {
    const pinned = lock();
    await load(page, '/changes');
    await says(page, 'Nothing is in quarantine: all that is served is pinned.');
    copyFileSync(join(options.folder, 'other.toml'), join(options.folder, 'next.toml'));
    renameSync(join(options.folder, 'next.toml'), join(options.folder, 'toolcell.toml'));
    const card = page.locator('#quarantined-text');
    await sees(card.locator('.warn', { hasText: 'It is not signed as the lock pins it.' }), 'another signer waits by itself');
    const shown = await textOf(card);
    for (const words of ['has no longer a signature by key sha256:', 'has now a signature by key sha256:']) {
        check(shown.includes(words), `who signed is shown: ${words} is not in ${shown}`);
    }
    for (const window of WINDOWS) await checkPage(window, '/changes', { shows: 'Also pin these signers' });

    await card.getByText('Approve…').click();
    const approves = card.getByRole('button', { name: 'Approve this digest' });
    await approves.click();
    const box = card.getByLabel('Also pin these signers in place of those that the lock has.');
    check(await box.evaluate(element => element.validity.valueMissing), 'the browser asks for the box');
    // A form that was sent without it, by whatever means, approves nothing.
    await box.evaluate(element => { element.required = false; });
    await approves.click();
    await isTold(page, 'It is not signed as the lock pins it: tick the box that pins its signers as well.');
    equal(lock(), pinned, 'the lock before the box is ticked');

    await card.getByText('Approve…').click();
    await box.check();
    await approves.click();
    await isTold(page, 'Approved. Generation 2 serves.');
    await says(page, 'Nothing is in quarantine');
    check(lock() !== pinned, 'the lock pins the other signer');
    await load(page, '/audit?text=with%20other%20signers');
    await sees(page.locator('#audit-list', { hasText: 'console.decided' }), 'the record says that signers were approved as well');
}

export async function checkSigned() {
    const opened = await open(LIGHT);
    await part(checkSigners.name, () => checkSigners(opened));
    await isQuiet(opened, 'decisions');
    await opened.context.close();
}
