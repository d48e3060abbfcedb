// Talks to toolcell with the page of the MCP Inspector, in a headless Chromium: a person's clicks, and the words that the
// page then shows.
//
// Usage: NODE inspector_page.mjs --era legacy|modern --toolcell BINARY --folder FOLDER --modules node_modules
//                                --frameworks FOLDER [--url URL]

import { CHART, CITY, ENDLESS, MISSPELT, PNG_OF_400_BY_200, check, checkRevision, endsAsCancelled, options, replace, running, until } from './conversation.mjs';
import { REVISIONS, button, close, connect, fillIn, listed, page, shows } from './inspector.mjs';

/** Calls a tool by its form. */
async function execute(name, args) {
    await listed(name).click();
    if (args !== undefined) await fillIn(args);
    await button('Execute Tool').click();
}

await connect();
await page.getByText('Tools', { exact: true }).click();
await shows('Tools (18)', 'weather_normals', 'chart', ENDLESS, 'version', 'linger');
check(true, 'the page lists all tools, from all pages of the list');

await execute('weather_normals', CITY);
await shows('Results', '"city": "Lisbon"', 'Structured Output', '"high": 28');
check(true, 'a structured result is shown as such');
await execute('chart', CHART);
await until(async () => (await pictures()).includes(PNG_OF_400_BY_200), 'the picture is drawn');
check(true, 'a picture is drawn, in its size');
await execute('weather_normals', MISSPELT);
await shows('did you mean Amsterdam?');
check(true, 'an error of a tool is shown');
checkRevision(REVISIONS[options.era]);

await execute(ENDLESS);
const number = await running();
await button('Cancel').click();
await endsAsCancelled(number);

await replace();
await shows('List updated');
await button('Refresh').click();
await listed('extra').waitFor();
check((await listed('linger').count()) === 0, 'the page says that the list changed, and shows the new one');

await close();

/** The first bytes of the pictures on the page that are 400 wide, in hexadecimal. */
async function pictures() {
    const sources = await page.locator('img').evaluateAll(images => images.filter(image => image.naturalWidth === 400).map(image => image.src));
    return sources.map(source => Buffer.from(source.split(',')[1] ?? '', 'base64').subarray(0, 24).toString('hex'));
}
