// The view of audit records of a real server: its search by each field, both exports, the page of a call, the chain. Must not
// hold: decisions.

import { readFileSync } from 'node:fs';

import { TWO_WINDOWS, WINDOWS, check, checkPage, equal, isTold, load, says, textOf } from './look.mjs';

// Columns of the table of records.
const [TOOL, CALLER, OUTCOME] = [3, 4, 5];
const CSV_HEAD = 'seq,time,event,id,tool,caller,component,outcome,duration_us,detail';

/** Different texts of a column of the records that are shown. */
async function column(page, number) {
    const texts = await page.locator(`#audit-list tbody tr td:nth-child(${number})`).allTextContents();
    return [...new Set(texts.map(text => text.trim()))];
}

/** Searches with the form. */
async function search(page, fields) {
    await load(page, '/audit');
    for (const [label, text] of Object.entries(fields)) {
        const field = page.getByRole('search').getByLabel(label, { exact: true });
        if (label === 'Outcome') await field.selectOption(text);
        else await field.fill(text);
    }
    await page.getByRole('button', { name: 'Search' }).click();
    await page.waitForURL(/\?/);
}

/** The text of the file that a link downloads. */
async function downloaded(page, link, name) {
    const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name: link }).click()]);
    equal(download.suggestedFilename(), name, `the name of ${link}`);
    return readFileSync(await download.path(), 'utf8');
}

/** Records of a download. */
const lines = text => text.trimEnd().split('\n').map(line => JSON.parse(line));

// A cell of CSV: in quotes, plain, or empty.
const CELL = /"((?:[^"]|"")*)"|([^,]+)|(?<=^|,)(?=,|$)/g;
const cell = ([, quoted, plain]) => (quoted ?? plain ?? '').replaceAll('""', '"');

/** The cells of lines of CSV. */
const cells = text => text.trimEnd().split('\r\n').map(line => [...line.matchAll(CELL)].map(cell));

async function checkSearch(page) {
    await search(page, { Tool: 'read' });
    equal(await column(page, TOOL), ['read'], 'tools of the records of read');
    await search(page, { Caller: 'eve' });
    equal(await column(page, CALLER), ['eve'], "callers of eve's records");
    check((await column(page, TOOL)).length > 1, 'eve called several tools');
    await search(page, { Outcome: 'cancelled' });
    equal([await column(page, OUTCOME), await column(page, TOOL)], [['cancelled'], ['slow']], 'cancelled calls');
    await search(page, { Tool: 'read', Caller: 'eve', Since: '1h', Outcome: 'ok' });
    const found = [await column(page, TOOL), await column(page, CALLER), await column(page, OUTCOME)];
    equal(found, [['read'], ['eve'], ['ok']], 'records that fit all fields');
    await search(page, { Until: '2020-01-01T00:00:00Z' });
    await says(page, 'No record matches.');
    await search(page, { Text: 'console.decided' });
    check((await textOf(page.locator('#audit-list tbody tr'))).includes('console.decided'), 'records with a text are found');
    await search(page, { Since: 'soon' });
    await says(page, 'is not a time');
}

async function checkExports(page) {
    await load(page, '/audit');
    const all = lines(await downloaded(page, 'Export JSON Lines', 'audit.jsonl'));
    equal(all.map(record => record.seq), all.map((_, at) => at + 1), 'the numbers of all records');
    const table = cells(await downloaded(page, 'Export CSV', 'audit.csv'));
    equal(table[0].join(','), CSV_HEAD, 'the head of the table');
    // Between the two downloads something may have been recorded.
    check(table.length > all.length, `rows of the table: ${table.length - 1} of ${all.length}`);
    check(table.every(row => row.length === table[0].length), 'each row of the table has all cells');
    const numbered = table.slice(1, all.length + 1).map(row => [row[0], row[2]]);
    equal(numbered, all.map(record => [String(record.seq), record.event]), 'the rows of the table');

    await search(page, { Tool: 'slow', Caller: 'eve' });
    const found = lines(await downloaded(page, 'Export JSON Lines', 'audit.jsonl'));
    equal(found.map(({ event, tool }) => [event, tool]), [['call.started', 'slow'], ['call.finished', 'slow']], 'exported records of a search');
    const rows = cells(await downloaded(page, 'Export CSV', 'audit.csv')).slice(1);
    const expected = [['call.started', 'slow', 'eve', '', ''], ['call.finished', 'slow', 'eve', 'cancelled', 'the operator ended the call']];
    equal(rows.map(row => [row[2], row[4], row[5], row[7], row[9]]), expected, 'exported rows of a search');
}

export async function checkAudit({ page }) {
    await checkSearch(page);
    await checkExports(page);
    // A call that was denied once, from start to end.
    await search(page, { Tool: 'fetch_page', Outcome: 'ok' });
    const path = await page.locator('#audit-list a[href^="/audit/calls/"]').first().getAttribute('href');
    await search(page, { Tool: 'read', Outcome: 'ok' });
    const asked = await page.locator('#audit-list a[href^="/audit/calls/"]').first().getAttribute('href');
    for (const [shown, windows, words] of [[path, WINDOWS, 'call.finished'], [asked, TWO_WINDOWS, 'call.asked']]) {
        const heading = new RegExp(`^Call ${shown.split('.').pop()} ok$`);
        for (const window of windows) await checkPage(window, shown, { heading, shows: words });
    }
    await load(page, '/audit');
    await page.getByRole('button', { name: 'Check the chain now' }).click();
    await isTold(page, 'The chain of records is whole.');
    check(/^chain whole \d+ records/.test(await textOf(page.locator('.chain'))), 'the state of the chain is shown');
    await checkPage(TWO_WINDOWS[1], '/audit', { shows: 'chain whole' });
}
