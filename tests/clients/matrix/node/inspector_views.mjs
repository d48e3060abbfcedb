// Looks at the view of `chart` and at a skill with the page of the MCP Inspector, which shows views through the bridge of
// MCP Apps in a frame of another origin, as agents' clients do. A person's clicks, in a headless Chromium.
//
// Usage: NODE inspector_views.mjs --era legacy|modern --toolcell BINARY --folder FOLDER --modules node_modules
//                                 --frameworks FOLDER [--url URL]

import { CHART, check, checkRevision, options, records, until } from './conversation.mjs';
import { REVISIONS, close, connect, fillIn, page, shows } from './inspector.mjs';

const TWO = { ...CHART, title: 'Load', series: [...CHART.series, { name: 'mail', values: [2, 2, 3, 1] }] };

// What the view asks the network for: nothing.
const asked = [];
page.on('request', request => {
    const { protocol } = new URL(request.url());
    if (viewOf()?.url() === request.frame()?.url() && !['about:', 'data:', 'blob:'].includes(protocol)) asked.push(request.url());
});

/** The frame of the view: the innermost one. */
const viewOf = () => page.frames().findLast(frame => frame.parentFrame()?.parentFrame());

/** The first value of this expression in the view that is one. */
const inView = (expression, claim) => until(async () => viewOf()?.evaluate(expression).catch(() => undefined), claim);

await connect();
await page.getByText('Apps', { exact: true }).click();
await page.getByText('Draw a chart', { exact: true }).click();
await fillIn(TWO);
await page.getByTestId('open-app').click();
await inView("document.querySelectorAll('#plot polyline').length === 2", 'the view draws both lines');
check(true, 'the view draws the arguments of the call, a line each');
await inView("document.getElementById('said').textContent.startsWith('Line chart')", 'the view has the result');
check(true, 'the view has the text of the result');

await viewOf().locator('#kind').click();
await inView("document.querySelectorAll('#plot rect').length === 7", 'lines become bars');
await viewOf().getByRole('button', { name: 'mail' }).click();
await inView("document.querySelectorAll('#plot rect').length === 3", 'a series is left out');
check(true, 'a person turns lines into bars, and leaves a series out');

const calls = () => records('call.finished').filter(record => record.tool === 'chart').length;
const before = calls();
await viewOf().locator('#picture').click();
const DRAWN = "(canvas => canvas && canvas.width === 400 && canvas.height === 200 && new Set(canvas.getContext('2d').getImageData(0, 0, 400, 200).data).size > 2)(document.querySelector('#drawn canvas'))";
await inView(DRAWN, 'the picture is drawn');
check(true, 'the view has the tool draw a picture, and shows it');
check(calls() === before + 1, 'the call of the view is one in the audit');
check(asked.length === 0, 'the view asks the network for nothing', asked);
checkRevision(REVISIONS[options.era]);

await page.getByText('Skills', { exact: true }).click();
await page.getByText('charts', { exact: true }).first().click();
await shows('How to read a chart.', '0 ERROR(S), 0 WARNING(S)', 'skill://charts/references/colours.md');
check(true, 'the page lists the skill and its files, and finds no fault in its entry');
await page.getByText('Verify all').click();
const verified = async () => (await page.getByTestId('skill-manifest').innerText()).split('VERIFIED').length - 1;
await until(async () => (await verified()) === 2, 'both files of the skill are verified');
check(true, 'the files that are read fit their digests');

await close();
